#!/usr/bin/env node
import { constants } from 'node:os';
import { asDsecError, DsecError } from '@dsec/std';
import { Command, CommanderError } from 'commander';
import { addDoctorCommand } from './commands/doctor.ts';
import { addEdgeCommand } from './commands/edge.ts';
import { addLayerCommands } from './commands/layer.ts';
import { printError } from './output.ts';

const program = new Command('dsec')
  .description('Sandboxes for training and evaluating language-model agents')
  .version('0.1.0')
  .option('--state <directory>', 'where DSec keeps its state (DSEC_STATE; /var/lib/dsec for root)')
  .option('--json', 'one JSON document on standard output, for programs')
  .showHelpAfterError('(dsec --help shows the commands)')
  .exitOverride();

process.stdout.on('error', endWithoutReader);
// Where there is nobody to tell, the exit code does.
process.stderr.on('error', () => {});

addDoctorCommand(program);
addEdgeCommand(program);
addLayerCommands(program);

try {
  await program.parseAsync();
} catch (thrown) {
  process.exitCode = report(thrown);
}

/** Exit codes: those of the error table; 2 for a command line that cannot be understood. */
function report(thrown: unknown): number {
  // Commander has already printed its own messages, help among them.
  if (thrown instanceof CommanderError) {
    if (thrown.exitCode === 0) return 0;
    const error = new DsecError('invalid-argument', thrown.message.replace(/^error: /, ''));
    if (program.opts().json === true) printError(error, true);
    return 2;
  }
  const error = asDsecError(thrown);
  printError(error, program.opts().json === true);
  if (error.code === 'internal' && process.env.DSEC_DEBUG === '1') console.error(error);
  return error.exitCode;
}

/**
 * A reader that has seen enough (`| head`) ends us as SIGPIPE ends other programs; a full disk is an
 * error.
 */
function endWithoutReader(thrown: NodeJS.ErrnoException): void {
  const isGone = thrown.code === 'EPIPE';
  const error = asDsecError(thrown);
  if (!isGone) printError(error, false);
  process.exit(isGone ? 128 + constants.signals.SIGPIPE : error.exitCode);
}
