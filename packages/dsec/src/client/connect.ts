import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { Client, findServer } from '@dsec/libdsec';
import { DsecError, SECOND_MS, systemClock } from '@dsec/std';
import { connectUnix } from '@dsec/transport';
import type { Settings } from '../command-line/settings.ts';

/**
 * The server and key of a command: what the options say, then the environment, then the client file. A
 * state directory that was named by option means the server of that directory.
 */
export function serverOf(
  settings: Settings,
  environment: Readonly<Record<string, string | undefined>>,
): { readonly url: string; readonly apiKey: string } {
  const { url, apiKey, client, state } = settings;
  const own = join(state?.value ?? '', 'client.json');
  const isNamed = state?.source.startsWith('option') === true && url?.source !== 'option --url';
  if (isNamed && existsSync(own)) return findServer({}, { DSEC_CLIENT: own });
  return findServer(
    { url: url?.value, apiKey: apiKey?.value },
    {
      ...environment,
      ...{ DSEC_URL: url?.value, DSEC_API_KEY: apiKey?.value },
      ...{ DSEC_STATE: state?.value, DSEC_CLIENT: client?.value },
    },
  );
}

/** Does something with a client, which is closed afterwards. */
export async function withClient<T>(
  settings: Settings,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const server = serverOf(settings, process.env);
  await requireAnswer(server.url);
  const client = new Client(server);
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}

/** A server that starts again is back by then. */
const PATIENCE_MS = 2 * SECOND_MS;
const PAUSE_MS = 100;

/**
 * Throws `unavailable` when nobody listens there: a program waits longer for its server, but who types a
 * command wants to know.
 */
async function requireAnswer(url: string): Promise<void> {
  const endMs = systemClock.monotonicMs() + PATIENCE_MS;
  for (;;) {
    const refusal = await refusalOf(url);
    if (refusal === undefined) return;
    if (systemClock.monotonicMs() > endMs) {
      throw new DsecError('unavailable', `nobody answers at ${url}: start DSec with dsec up`, {
        cause: refusal,
      });
    }
    await systemClock.sleep(PAUSE_MS);
  }
}

/** Why a connection was refused. What else may be wrong with an address, the client finds out. */
async function refusalOf(url: string): Promise<unknown> {
  const socket = url.startsWith('unix:/')
    ? connectUnix(url.slice('unix:'.length))
    : connectTo(URL.canParse(url) ? new URL(url) : undefined);
  if (socket === undefined) return undefined;
  try {
    await once(socket, 'connect');
    return undefined;
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    return code === 'ECONNREFUSED' || code === 'ENOENT' ? thrown : undefined;
  } finally {
    socket.destroy();
  }
}

/** Only where the port is said: the rest is for the client to judge. */
function connectTo(address: URL | undefined): Socket | undefined {
  if (address?.protocol !== 'http:' || address.port === '') return undefined;
  return connect(Number(address.port), address.hostname.replace(/[[\]]/g, ''));
}
