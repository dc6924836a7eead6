import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { Client, type FoundServer, findServer } from '@dsec/libdsec';
import { DsecError } from '@dsec/std';
import type { Settings } from '../command-line/settings.ts';

/**
 * The server and key of a command: what the options say, then the environment, then the client file. A
 * state directory that was named by option means the server of that directory.
 */
export function serverOf(
  settings: Settings,
  environment: Readonly<Record<string, string | undefined>>,
): FoundServer {
  const { url, apiKey, client, state, caFile } = settings;
  const own = join(state?.value ?? '', 'client.json');
  const isNamed = state?.source.startsWith('option') === true && url?.source !== 'option --url';
  if (isNamed && existsSync(own)) return findServer({}, { DSEC_CLIENT: own });
  return findServer(
    { url: url?.value, apiKey: apiKey?.value },
    {
      ...environment,
      ...{ DSEC_URL: url?.value, DSEC_API_KEY: apiKey?.value },
      ...{ DSEC_STATE: state?.value, DSEC_CLIENT: client?.value, DSEC_CA_FILE: caFile?.value },
    },
  );
}

/**
 * Whether layers are those of a server, over its API: one that is named by an option, the environment, the
 * configuration or the client file of the user. Otherwise they are those of the state directory, as with a
 * `--state`; a client file in there is of a server that has the same ones.
 */
export function hasLayerServer({ url, client, state }: Settings, home = homedir()): boolean {
  if (url?.source === 'option --url') return true;
  if (state?.source.startsWith('option') === true) return false;
  const isNamed = url !== undefined || client !== undefined;
  return isNamed || existsSync(join(home, '.config/dsec/client.json'));
}

/** Does something with a client, which is closed afterwards. */
export async function withClient<T>(
  settings: Settings,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const server = serverOf(settings, process.env);
  const client = new Client(server);
  try {
    return await work(client);
  } catch (thrown) {
    throw explain(thrown, server.url);
  } finally {
    await client.close();
  }
}

/** Who types a command wants to know what to do about it. */
function explain(thrown: unknown, url: string): unknown {
  if (!(thrown instanceof DsecError) || thrown.code !== 'unavailable') return thrown;
  if (!wasRefused(thrown)) return thrown;
  const message = `nobody answers at ${url}: start DSec with dsec up`;
  return new DsecError('unavailable', message, { cause: thrown });
}

/** Whether nobody listens: somewhere below is the system's own word for it. */
function wasRefused(thrown: unknown): boolean {
  for (let error = thrown; error instanceof Error; error = error.cause) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ECONNREFUSED' || code === 'ENOENT') return true;
  }
  return false;
}
