#!/usr/bin/env node
import { asDsecError, DsecError } from '@dsec/std';
import { Command, CommanderError } from 'commander';
import { addDoctorCommand } from './commands/doctor.ts';
import { addLayerCommands } from './commands/layer.ts';
import { printError } from './output.ts';

const program = new Command('dsec')
  .description('Sandboxes for training and evaluating language-model agents')
  .version('0.1.0')
  .option('--state <directory>', 'where DSec keeps its state (DSEC_STATE; /var/lib/dsec for root)')
  .option('--json', 'one JSON document on standard output, for programs')
  .showHelpAfterError('(dsec --help shows the commands)')
  .exitOverride();

addDoctorCommand(program);
addLayerCommands(program);

try {
  await program.parseAsync();
} catch (thrown) {
  process.exitCode = report(thrown);
}

/** Exit codes: those of the error table; 2 for a command line that cannot be understood. */
function report(thrown: unknown): number {
  // Commander has already printed its own messages, help among them.
  if (thrown instanceof CommanderError) return thrown.exitCode === 0 ? 0 : 2;
  const error = thrown instanceof DsecError ? thrown : asDsecError(thrown);
  printError(error, program.opts().json === true);
  if (error.code === 'internal' && process.env.DSEC_DEBUG === '1') console.error(error);
  return error.exitCode;
}
