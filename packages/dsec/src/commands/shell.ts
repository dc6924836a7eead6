import { attend } from '../client/attend.ts';
import { commandOptionsOf, ptyOptions } from '../client/command-options.ts';
import { withClient } from '../client/connect.ts';
import { requireTerminal } from '../client/terminal.ts';
import type { Invocation } from '../command-line/invocation.ts';
import { printWarning } from '../output.ts';

/** The best shell that is there, as somebody would find it who logs in. */
const SHELL = 'if command -v bash >/dev/null 2>&1; then exec bash -l; fi; exec sh -l';

export async function run({ args: [id = ''], flags, settings }: Invocation): Promise<void> {
  requireTerminal('use dsec exec for a command of a program');
  const { env = {}, ...options } = commandOptionsOf(flags);
  const terminal = ptyOptions();
  await withClient(settings, async (client) => {
    const sandbox = await client.get(id);
    const all = { ...options, ...terminal, env: { ...terminal.env, ...env } };
    const command = await sandbox.start(SHELL, all);
    printWarning('type exit to end the shell, or Enter ~ . to leave it when it does not answer');
    process.exitCode = await attend(command, { input: true, pty: true });
  });
}
