import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { Client, findServer } from '@dsec/libdsec';
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
    { ...environment, DSEC_STATE: state?.value, DSEC_CLIENT: client?.value },
  );
}

/** Does something with a client, which is closed afterwards. */
export async function withClient<T>(
  settings: Settings,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client(serverOf(settings, process.env));
  try {
    return await work(client);
  } finally {
    await client.close();
  }
}
