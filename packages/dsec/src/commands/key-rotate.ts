import { serverOf, withClient } from '../client/connect.ts';
import { parseDurationMs } from '../client/quantities.ts';
import { type Invocation, textFlag } from '../command-line/invocation.ts';
import { printJson, renderTable } from '../output.ts';
import { writePrivateFile } from '../private-file.ts';

export async function run({ args: [id = ''], flags, json, settings }: Invocation): Promise<void> {
  const grace = textFlag(flags, 'grace');
  const clientFile = textFlag(flags, 'clientFile');
  // Nothing at once is a time too.
  const graceMs =
    grace === undefined || grace === '0' ? grace && 0 : parseDurationMs(grace, '--grace');
  await withClient(settings, async (client) => {
    const { key, secret } = await client.keys.rotate(id, {
      ...(graceMs === undefined ? {} : { graceMs: Number(graceMs) }),
    });
    if (clientFile !== undefined) {
      const { url, caFile } = serverOf(settings, process.env);
      const server = { url, apiKey: secret, ...(caFile === undefined ? {} : { caFile }) };
      writePrivateFile(clientFile, `${JSON.stringify(server)}\n`);
    }
    if (json)
      return printJson({ key, ...(clientFile === undefined ? { secret } : { clientFile }) });
    const where = clientFile === undefined ? ['secret', secret] : ['written', clientFile];
    process.stdout.write(`${renderTable([], [['key', key.id], where])}\n`);
    if (clientFile === undefined) process.stderr.write('The secret is shown this once.\n');
  });
}
