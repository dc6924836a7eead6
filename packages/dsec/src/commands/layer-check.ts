import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import {
  checkHistory,
  directoryFiles,
  type HistoryFile,
  layerFiles,
  openLayerStore,
  resolveRef,
} from '@dsec/layers';
import { DsecError } from '@dsec/std';
import { type Invocation, textFlag } from '../command-line/invocation.ts';
import { checkStateDirectories } from '../config.ts';
import { printJson, renderTable } from '../output.ts';

export async function run({ args: [what = ''], flags, json, paths }: Invocation): Promise<void> {
  const [file, canary] = [textFlag(flags, 'removed'), textFlag(flags, 'canary')];
  if (file === undefined && canary === undefined) {
    throw new DsecError('invalid-argument', 'say what must not be there: --removed or --canary');
  }
  const removed = file === undefined ? [] : readFileSync(file, 'utf8').split('\n').filter(Boolean);
  const files = await filesOf(what, paths);
  const report = await checkHistory(files, { removed, canary });
  if (json) printJson(report);
  else {
    const rows = report.problems.map(({ path, problem }) => [JSON.stringify(path), problem]);
    if (rows.length > 0) process.stdout.write(`${renderTable(['WHERE', 'WHAT'], rows)}\n`);
    const count = report.problems.length || 'nothing';
    process.stdout.write(
      `${report.files} files and ${report.objects} packed objects: ${count} found\n`,
    );
  }
  if (report.problems.length === 0) return;
  throw new DsecError('layer-invalid', `something of what was cut is left in ${what}`);
}

async function filesOf(
  what: string,
  paths: Invocation['paths'],
): Promise<AsyncGenerator<HistoryFile>> {
  if (existsSync(what)) return directoryFiles(resolve(what));
  checkStateDirectories(paths);
  const store = await openLayerStore(paths.store);
  return layerFiles(store, (await resolveRef(store, what)).layerId);
}
