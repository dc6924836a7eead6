import { withClient } from '../client/connect.ts';
import type { Invocation } from '../command-line/invocation.ts';
import { printJson, printLines } from '../output.ts';

export async function run({ args: [id = ''], json, settings }: Invocation): Promise<void> {
  await withClient(settings, async (client) => {
    await client.keys.revoke(id);
    if (json) printJson({ revoked: id });
    else printLines([`revoked ${id}`]);
  });
}
