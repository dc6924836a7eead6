// @ts-check
import { writeSync } from 'node:fs';
import { relative } from 'node:path';

/** The pipe of tools/test.mjs. */
const EVENTS_FD = 3;

/** @typedef {import('./record.mjs').TestEvent} TestEvent */
/** @typedef {import('vitest/node').Reporter} Reporter */

/**
 * Tells tools/test.mjs about each test as it ends, one JSON object a line. Vitest wants a class and a
 * default export.
 *
 * @implements {Reporter}
 */
export default class PipeReporter {
  /** @param {import('vitest/node').TestCase} testCase */
  onTestCaseResult(testCase) {
    const result = testCase.result();
    if (result.state === 'pending') return;
    tell({
      kind: 'test',
      file: pathOf(testCase.module),
      name: testCase.fullName,
      state: result.state,
      durationMs: testCase.diagnostic()?.duration ?? 0,
      reason: result.state === 'skipped' ? result.note : undefined,
      errors: (result.errors ?? []).map(textOf),
    });
  }

  /** @param {import('vitest/node').TestModule} module */
  onTestModuleEnd(module) {
    const errors = [module, ...module.children.allSuites()]
      .flatMap((part) => part.errors())
      .map(textOf);
    tell({ kind: 'file', file: pathOf(module), durationMs: module.diagnostic().duration, errors });
  }

  /**
   * @param {readonly import('vitest/node').TestModule[]} _modules
   * @param {readonly import('vitest/node').SerializedError[]} errors
   */
  onTestRunEnd(_modules, errors) {
    tell({ kind: 'end', errors: errors.map(textOf) });
  }

  /** @param {import('vitest').UserConsoleLog} log */
  onUserConsoleLog(log) {
    process.stdout.write(log.content);
  }
}

/** @param {TestEvent} event */
function tell(event) {
  const line = Buffer.from(`${JSON.stringify(event)}\n`);
  for (let sent = 0; sent < line.length; ) {
    try {
      sent += writeSync(EVENTS_FD, line, sent);
    } catch (error) {
      // The reader is behind; the pipe is in non-blocking mode.
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5);
    }
  }
}

/** @param {import('vitest/node').TestModule} module */
function pathOf(module) {
  return relative(process.cwd(), module.moduleId);
}

/**
 * @param {{
 *   message: string,
 *   stacks?: readonly { file: string, line: number }[],
 *   diff?: string,
 * }} error
 */
function textOf(error) {
  const at = (error.stacks ?? [])
    .filter(({ file }) => !file.includes('node_modules'))
    .map(({ file, line }) => `  at ${relative(process.cwd(), file)}:${line}`);
  return [error.message, ...(error.diff === undefined ? [] : [error.diff]), ...at.slice(0, 5)].join(
    '\n',
  );
}
