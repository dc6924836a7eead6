import { probeHost, renderHostReport } from '@dsec/linux';
import { ERROR_CODES } from '@dsec/std';
import type { Command } from 'commander';
import { printJson } from '../output.ts';
import { makeProbeLayer } from '../probe-layer.ts';
import { globalOptions } from './globals.ts';

export function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('what this machine can do for DSec, what is missing and how to get it')
    .addHelpText('after', '\nExit code: 0 when layers can be used here, 17 when they cannot.')
    .action(async (_options: unknown, command: Command) => {
      const { json, paths } = globalOptions(command);
      const report = await probeHost({
        stateDirectory: paths.root,
        erofsImage: makeProbeLayer(),
      });
      if (json) printJson(report);
      else process.stdout.write(`${renderHostReport(report, { color: process.stdout.isTTY })}\n`);
      const usable = report.verdicts.layers.status !== 'impossible';
      process.exitCode = usable ? 0 : ERROR_CODES.unsupported.exitCode;
    });
}
