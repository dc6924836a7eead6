import { attend } from '../client/attend.ts';
import {
  commandOf,
  commandOptionsOf,
  DOCUMENT_OUTPUT_BYTES,
  ptyOptions,
} from '../client/command-options.ts';
import { withClient } from '../client/connect.ts';
import { hasInput } from '../client/input.ts';
import { printResult } from '../client/result.ts';
import { requireTerminal } from '../client/terminal.ts';
import type { Invocation } from '../command-line/invocation.ts';
import { withInterrupt } from './interrupt.ts';

export async function run({ args, flags, json, settings }: Invocation): Promise<void> {
  const [id = '', ...words] = args;
  const command = commandOf(words);
  const options = commandOptionsOf(flags);
  const pty = flags.tty === true;
  if (pty) requireTerminal('leave --tty away');
  await withClient(settings, async (client) => {
    const sandbox = await client.get(id);
    if (json) {
      const limits = { ...options, maxOutputBytes: DOCUMENT_OUTPUT_BYTES };
      const result = await withInterrupt((signal) => sandbox.exec(command, { ...limits, signal }));
      process.exitCode = printResult(result);
      return;
    }
    const input = flags.input !== false && (pty || hasInput());
    const { env, ...terminal } = pty ? ptyOptions() : { env: {} };
    const started = await sandbox.start(command, {
      ...{ ...options, ...terminal, stdin: input },
      env: { ...env, ...options.env },
    });
    if (flags.detach === true) {
      process.stdout.write(`${started.id}\n`);
      return;
    }
    process.exitCode = await attend(started, { input, pty });
  });
}
