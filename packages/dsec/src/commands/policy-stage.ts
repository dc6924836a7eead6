import { STAGES } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import { withClient } from '../client/connect.ts';
import { sandboxJson } from '../client/table-values.ts';
import type { Invocation } from '../command-line/invocation.ts';
import { printJson, printLines } from '../output.ts';

export async function run({ args, flags, json, settings }: Invocation): Promise<void> {
  const [id = '', text = ''] = args;
  const stage = STAGES.find((known) => known === text);
  if (stage === undefined) {
    throw new DsecError('invalid-argument', `a stage is one of ${STAGES.join(', ')}, not ${text}`);
  }
  await withClient(settings, async (client) => {
    const sandbox = await client.get(id);
    const { info } = await sandbox.setStage(stage, { loosen: flags.loosen === true });
    if (json) printJson(sandboxJson(info));
    else printLines([`${id} ${stage}`]);
  });
}
