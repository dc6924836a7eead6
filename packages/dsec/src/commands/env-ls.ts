import type { Environment } from '@dsec/protocol';
import { withClient } from '../client/connect.ts';
import { showTime } from '../client/table-values.ts';
import type { Invocation } from '../command-line/invocation.ts';
import { printJson, printLines, renderTable } from '../output.ts';

export async function run({ flags, json, settings }: Invocation): Promise<void> {
  await withClient(settings, async (client) => {
    const environments: Environment[] = [];
    for await (const environment of client.environments.list()) environments.push(environment);
    if (json) return printJson({ environments });
    if (flags.quiet === true) return printLines(environments.map(({ name }) => name));
    const rows = environments.map(({ name, layers, updatedAtMs }) => {
      return [name, layers.join(' '), showTime(updatedAtMs)];
    });
    process.stdout.write(`${renderTable(['ENVIRONMENT', 'LAYERS', 'CHANGED'], rows)}\n`);
  });
}
