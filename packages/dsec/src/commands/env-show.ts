import { withClient } from '../client/connect.ts';
import { showTime } from '../client/table-values.ts';
import type { Invocation } from '../command-line/invocation.ts';
import { printJson, renderTable } from '../output.ts';

export async function run({ args: [name = ''], json, settings }: Invocation): Promise<void> {
  await withClient(settings, async (client) => {
    const found = await client.environments.get(name);
    if (json) return printJson(found);
    const rows = [
      ['environment', found.name],
      ...found.layers.map((layer) => ['layer', layer]),
      ['revision', String(found.revision)],
      ['changed', showTime(found.updatedAtMs)],
    ];
    process.stdout.write(`${renderTable([], rows)}\n`);
  });
}
