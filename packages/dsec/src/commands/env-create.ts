import { withClient } from '../client/connect.ts';
import type { Invocation } from '../command-line/invocation.ts';
import { printJson, printLines } from '../output.ts';

export async function run({ args, flags, json, settings }: Invocation): Promise<void> {
  const [name = '', ...layers] = args;
  await withClient(settings, async (client) => {
    // Revision 0: only if there is none.
    const options = flags.replace === true ? {} : { revision: 0 };
    const made = await client.environments.put(name, layers, options);
    if (json) printJson(made);
    else printLines([`${made.name}: ${made.layers.join(' ')}`]);
  });
}
