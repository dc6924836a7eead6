#!/usr/bin/env node
import { constants } from 'node:os';
import { asDsecError, DsecError } from '@dsec/std';
import { CommanderError } from 'commander';
import { buildProgram } from './command-line/program.ts';
import { UsageError } from './command-line/usage-error.ts';
import { printError, settleReaderGone } from './output.ts';

const program = buildProgram('0.1.0');

let isUnread = false;
process.stdout.on('error', endWithoutReader);
// Where there is nobody to tell, the exit code does.
process.stderr.on('error', () => {});

try {
  await program.parseAsync();
} catch (thrown) {
  if (!isUnread) process.exitCode = report(thrown);
}

/** Exit codes: those of the error table; 2 for a command line that cannot be understood. */
function report(thrown: unknown): number {
  // It may be the command line itself that could not be read, so this is asked of its words.
  const words = process.argv.slice(2);
  const end = words.indexOf('--');
  const json = words.slice(0, end === -1 ? undefined : end).includes('--json');
  // Commander has already printed its own messages, help among them.
  if (thrown instanceof CommanderError) {
    if (thrown.exitCode === 0) return 0;
    const error = new DsecError('invalid-argument', thrown.message.replace(/^error: /, ''));
    if (json) printError(error, true);
    return 2;
  }
  const error = asDsecError(thrown);
  printError(error, json, error instanceof UsageError ? error.hint : undefined);
  if (error.code === 'internal' && process.env.DSEC_DEBUG === '1') console.error(error);
  return error.exitCode;
}

/**
 * A reader that has seen enough (`| head`) ends us as SIGPIPE ends other programs; a full disk is an
 * error.
 */
function endWithoutReader(thrown: NodeJS.ErrnoException): void {
  if (isUnread) return;
  isUnread = true;
  const isGone = thrown.code === 'EPIPE';
  const error = asDsecError(thrown);
  if (!isGone) printError(error, false);
  const code = isGone ? 128 + constants.signals.SIGPIPE : error.exitCode;
  void settleReaderGone().finally(() => process.exit(code));
}
