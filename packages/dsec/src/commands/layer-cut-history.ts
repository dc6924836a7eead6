import { writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { cutHistory } from '@dsec/layers';
import { type Invocation, textFlag } from '../command-line/invocation.ts';
import { printJson } from '../output.ts';

export async function run({ args: [path = ''], flags, json }: Invocation): Promise<void> {
  const [commit, file] = [textFlag(flags, 'at'), textFlag(flags, 'removed')];
  const directory = resolve(path);
  const cut = await cutHistory({ directory, ...(commit === undefined ? {} : { commit }) });
  if (file !== undefined) writeFileSync(file, cut.removed.map((id) => `${id}\n`).join(''));
  if (json) return printJson({ ...cut, removed: cut.removed.length });
  process.stdout.write(
    `${cut.commit}: ${cut.keptObjects} objects kept, ${cut.removed.length} removed\n`,
  );
  for (const each of cut.residue) process.stdout.write(`removed ${JSON.stringify(each)}\n`);
}
