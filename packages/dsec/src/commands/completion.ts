import { DsecError } from '@dsec/std';
import { completionFor } from '../command-line/completion.ts';
import type { Invocation } from '../command-line/invocation.ts';

const SHELLS = ['bash', 'zsh', 'fish'] as const;

export async function run({ args: [name = ''], table }: Invocation): Promise<void> {
  const shell = SHELLS.find((known) => known === name);
  if (shell === undefined) {
    throw new DsecError('invalid-argument', `a shell is one of ${SHELLS.join(', ')}`);
  }
  process.stdout.write(completionFor(shell, table));
}
