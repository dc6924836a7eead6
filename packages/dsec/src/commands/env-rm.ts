import { withClient } from '../client/connect.ts';
import type { Invocation } from '../command-line/invocation.ts';
import { printJson, printLines } from '../output.ts';

export async function run({ args: [name = ''], json, settings }: Invocation): Promise<void> {
  await withClient(settings, async (client) => {
    // The removal itself may be repeated, and takes one that is gone as well.
    await client.environments.get(name);
    await client.environments.remove(name);
    if (json) printJson({ removed: name });
    else printLines([`removed ${name}`]);
  });
}
