import { parseArgs } from 'node:util';
import { benchCreate } from './create.ts';
import { benchDensity } from './density.ts';
import { benchExec } from './exec.ts';
import { benchLayers } from './layers.ts';
import { benchNetwork } from './network.ts';
import { type BenchOptions, type BenchReport, renderReport } from './report.ts';

const BENCHES: Readonly<Record<string, (options: BenchOptions) => Promise<BenchReport>>> = {
  create: benchCreate,
  exec: benchExec,
  density: benchDensity,
  layers: benchLayers,
  network: benchNetwork,
};
const COUNT_MAX = 16_384;
const UPPERS = ['tmpfs', 'image', 'btrfs'] as const;
const EXIT_INTERRUPTED = 130;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    runs: { type: 'string' },
    count: { type: 'string' },
    upper: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});
const bench = BENCHES[positionals[0] ?? ''];
const counts = {
  ...(values.runs === undefined ? {} : { runs: Number(values.runs) }),
  ...(values.count === undefined ? {} : { count: Number(values.count) }),
};
const upper = UPPERS.find((driver) => driver === values.upper);
/** `layers` makes no sandbox. */
const isUpper = values.upper === undefined || (upper !== undefined && bench !== benchLayers);
const isUsable =
  bench !== undefined &&
  positionals.length === 1 &&
  isUpper &&
  isWithin(counts.runs ?? 1, 100) &&
  isWithin(counts.count ?? 1, COUNT_MAX);

function isWithin(value: number, most: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= most;
}

if (values.help || !isUsable) {
  process.stderr.write(
    'usage: npm run bench -- NAME [--json] [--runs N] [--count N] [--upper DRIVER]\n' +
      `  NAME     ${Object.keys(BENCHES).join(', ')}\n` +
      '  --json   the report as one JSON object on the last line\n' +
      '  --runs   counted runs of each contestant, 1 to 100 (5; density 1)\n' +
      "  --count  sandboxes or commands in a run; the benchmark's own number when it is absent\n" +
      `  --upper  ${UPPERS.join(', ')}: where sandboxes write; not with layers (tmpfs)\n`,
  );
  process.exitCode = values.help ? 0 : 2;
} else {
  await report(bench);
}

async function report(run: (options: BenchOptions) => Promise<BenchReport>): Promise<void> {
  const interrupted = new AbortController();
  const stop = () => interrupted.abort(new Error('interrupted'));
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, stop);
  const say = (line: string) => process.stderr.write(`${line}\n`);
  const signal = interrupted.signal;
  try {
    const found = await run({ say, signal, ...counts, ...(upper === undefined ? {} : { upper }) });
    process.stdout.write(renderReport(found));
    if (values.json) process.stdout.write(`${JSON.stringify(found)}\n`);
  } catch (thrown) {
    if (!signal.aborted) throw thrown;
    say('interrupted: what was made is gone');
    process.exitCode = EXIT_INTERRUPTED;
  }
}
