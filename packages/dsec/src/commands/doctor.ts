import { probeHost, renderHostReport } from '@dsec/linux';
import { ERROR_CODES } from '@dsec/std';
import type { Invocation } from '../command-line/invocation.ts';
import { printJson } from '../output.ts';
import { makeProbeLayer } from '../probe-layer.ts';

export async function run({ json, paths }: Invocation): Promise<void> {
  const report = await probeHost({
    stateDirectory: paths.root,
    erofsImage: makeProbeLayer(),
  });
  if (json) printJson(report);
  else process.stdout.write(`${renderHostReport(report, { color: process.stdout.isTTY })}\n`);
  const usable = report.verdicts.layers.status !== 'impossible';
  process.exitCode = usable ? 0 : ERROR_CODES.unsupported.exitCode;
}
