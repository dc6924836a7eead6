import type { Client, Sandbox, SandboxOptions } from '@dsec/libdsec';
import { BATCH_COUNT_MAX } from '@dsec/protocol';
import { attend } from '../client/attend.ts';
import {
  type CommandOptions,
  commandOf,
  commandOptionsOf,
  DOCUMENT_OUTPUT_BYTES,
  ptyOptions,
} from '../client/command-options.ts';
import { withClient } from '../client/connect.ts';
import { hasInput } from '../client/input.ts';
import { parseCount } from '../client/quantities.ts';
import { printResult } from '../client/result.ts';
import { runMany } from '../client/run-many.ts';
import { createOptionsOf } from '../client/sandbox-options.ts';
import { sandboxJson } from '../client/table-values.ts';
import { requireTerminal } from '../client/terminal.ts';
import { type Flags, type Invocation, textFlag } from '../command-line/invocation.ts';
import { onReaderGone, printJson, printWarning, sayIfSlow } from '../output.ts';
import { withInterrupt } from './interrupt.ts';

export async function run({ args, flags, json, settings }: Invocation): Promise<void> {
  const create = createOptionsOf(flags);
  const isKept = flags.keep === true;
  const command = isKept && args.length === 0 ? undefined : commandOf(args);
  // The user and directory of the sandbox are those of its commands.
  const { user: _user, cwd: _cwd, env: _env, ...options } = commandOptionsOf(flags);
  const countText = textFlag(flags, 'count');
  const job = { create, command, options, isKept, json };
  await withClient(settings, async (client) => {
    if (countText === undefined) return runOne(client, job, flags);
    const count = parseCount(countText, '--count', 1, BATCH_COUNT_MAX);
    process.exitCode = await withInterrupt((signal) => runMany(client, { ...job, count }, signal));
  });
}

interface Job {
  readonly create: SandboxOptions;
  readonly command: readonly string[] | undefined;
  readonly options: CommandOptions;
  readonly isKept: boolean;
  readonly json: boolean;
}

async function runOne(client: Client, job: Job, flags: Flags): Promise<void> {
  const { create, command, isKept, json } = job;
  const pty = flags.tty === true;
  if (pty) requireTerminal('leave --tty away');
  await withInterrupt(async (interrupt) => {
    const making = client.create({ ...create, signal: interrupt });
    const sandbox = await sayIfSlow(
      making,
      'no sandbox yet: the node is full or slow; Ctrl-C gives up',
    );
    const forget = onReaderGone(() => (isKept ? Promise.resolve() : sandbox.stop()));
    try {
      if (command === undefined) return printKept(sandbox, json);
      process.exitCode = await runIn(sandbox, command, { job, flags, pty, interrupt });
      if (isKept && !json) printWarning(`kept ${sandbox.id}: dsec stop ${sandbox.id} ends it`);
    } finally {
      forget();
      if (!isKept) await sandbox.stop();
    }
  });
}

interface Place {
  readonly job: Job;
  readonly flags: Flags;
  readonly pty: boolean;
  readonly interrupt: AbortSignal;
}

async function runIn(
  sandbox: Sandbox,
  command: readonly string[],
  { job: { options, json }, flags, pty, interrupt }: Place,
): Promise<number> {
  if (json) {
    const limits = { ...options, maxOutputBytes: DOCUMENT_OUTPUT_BYTES };
    const result = await sandbox.exec(command, { ...limits, signal: interrupt });
    return printResult(result, { sandbox: sandbox.id });
  }
  const input = flags.input !== false && (pty || hasInput());
  const terminal = pty ? ptyOptions() : {};
  const started = await sandbox.start(command, { ...options, ...terminal, stdin: input });
  return attend(started, { input, pty, interrupt });
}

function printKept({ id, info }: Sandbox, json: boolean): void {
  if (json) printJson(sandboxJson(info));
  else process.stdout.write(`${id}\n`);
}
