// @ts-check
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BootstrapFailure } from './failure.mjs';
import { digestOf, readStamp, writeStamp } from './stamp.mjs';
import { filesBelow } from './workspaces.mjs';

const COMPILE_TIMEOUT_MS = 600_000;

/** @type {import('./step.mjs').Step} */
export const typescriptStep = {
  name: 'TypeScript',

  async missing({ root }) {
    const { sources, outputs } = inventory(root);
    if (readStamp(stampPath(root)) !== digest(root, sources))
      return ['the build of changed sources'];
    return outputs.every((path) => existsSync(path)) ? [] : ['some built files'];
  },

  async bring({ root, run, report }) {
    report.note('tsc -b');
    const { sources, outputs } = inventory(root);
    // What is stamped is what was there before the compiler read it: a later change is seen by the next run.
    const before = digest(root, sources);
    const tsc = join(root, 'node_modules/typescript/bin/tsc');
    // tsc trusts its own records: when an output was deleted by hand it has to be told to write all again.
    const isComplete = outputs.every((path) => existsSync(path));
    const args = isComplete ? [tsc, '-b'] : [tsc, '-b', '--force'];
    const result = await run(process.execPath, args, {
      cwd: root,
      timeoutMs: COMPILE_TIMEOUT_MS,
      onLine: report.progress,
    });
    if (result.code !== 0) {
      throw new BootstrapFailure(
        'build',
        `tsc -b failed:\n${result.tail}`,
        'mend the types, then start again',
      );
    }
    writeStamp(stampPath(root), before);
  },
};

/** @type {import('./step.mjs').Step} */
export const nativeStep = {
  name: 'native',

  async missing({ root, run }) {
    if (!existsSync(join(root, 'native/Makefile'))) return [];
    const { code } = await run('make', ['-C', 'native', '-q'], {
      cwd: root,
      timeoutMs: COMPILE_TIMEOUT_MS,
    });
    return code === 0 ? [] : ['the C programs'];
  },

  async bring({ root, run, report, host }) {
    report.note('make -C native');
    const result = await run('make', ['-C', 'native', `-j${host.processors}`], {
      cwd: root,
      timeoutMs: COMPILE_TIMEOUT_MS,
      onLine: report.progress,
    });
    if (result.code !== 0) {
      throw new BootstrapFailure(
        'build',
        `make -C native failed:\n${result.tail}`,
        'mend the C sources, then start again',
      );
    }
  },
};

/** @param {string} root */
const stampPath = (root) => join(root, 'node_modules/.cache/dsec/typescript.stamp');

/**
 * The sources of every part that the root tsconfig builds, and the files that the build must leave.
 *
 * @param {string} root
 */
function inventory(root) {
  /** @type {{ references: { path: string }[] }} */
  const { references } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'));
  const sources = [join(root, 'tsconfig.json'), join(root, 'tsconfig.base.json')];
  const outputs = [];
  for (const { path: folder } of references) {
    const src = join(root, folder, 'src');
    const files = filesBelow(src, '.ts');
    sources.push(join(root, folder, 'tsconfig.json'), join(root, folder, 'package.json'), ...files);
    for (const file of files) {
      outputs.push(join(root, folder, 'dist', `${file.slice(src.length + 1, -'.ts'.length)}.js`));
    }
  }
  return { sources, outputs };
}

/** @param {string} root @param {readonly string[]} sources */
function digest(root, sources) {
  return digestOf(sources, [readStamp(join(root, 'node_modules/.cache/dsec/modules.stamp'))]);
}
