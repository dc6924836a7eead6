import { parseArgs } from 'node:util';
import { benchLayers } from './layers.ts';
import { type BenchOptions, type BenchReport, renderReport } from './report.ts';

const BENCHES: Readonly<Record<string, (options: BenchOptions) => Promise<BenchReport>>> = {
  layers: benchLayers,
};

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    json: { type: 'boolean', default: false },
    runs: { type: 'string', default: '5' },
    help: { type: 'boolean', default: false },
  },
});
const bench = BENCHES[positionals[0] ?? ''];
const runs = Number(values.runs);
if (values.help || bench === undefined || positionals.length !== 1 || !(runs >= 1 && runs <= 100)) {
  process.stderr.write(
    'usage: npm run bench -- NAME [--json] [--runs N]\n' +
      `  NAME    ${Object.keys(BENCHES).join(', ')}\n` +
      '  --json  the report as one JSON object on the last line\n' +
      '  --runs  counted runs of each contestant, 1 to 100 (5)\n',
  );
  process.exitCode = values.help ? 0 : 2;
} else {
  const report = await bench({ runs, say: (line) => process.stderr.write(`${line}\n`) });
  process.stdout.write(renderReport(report));
  if (values.json) process.stdout.write(`${JSON.stringify(report)}\n`);
}
