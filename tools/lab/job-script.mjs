// @ts-check

const REPORT = '/run/report.json';
const PORTS = '/dev/virtio-ports/lab';

/**
 * The shell script of a job that runs one command with some of our environment.
 *
 * @param {readonly string[]} command
 * @param {Readonly<Record<string, string | undefined>>} env Of ours; what it says of DSec and of colours
 *   is passed on.
 */
export function commandScript(command, env) {
  return `${exports(env)}exec ${command.map(quoted).join(' ')}\n`;
}

/**
 * The job that runs the lab's test suite. It hands over vitest's report when it is done and, where asked,
 * what `tools/test/vitest-reporter.mjs` tells of each test as it ends.
 *
 * @param {{ filters: readonly string[], withEvents: boolean }} options Filters are names of test files,
 *   in part; none means all.
 * @param {Readonly<Record<string, string | undefined>>} env As above.
 */
export function suiteScript({ filters, withEvents }, env) {
  const vitest = [
    'node',
    'node_modules/vitest/vitest.mjs',
    'run',
    '--config',
    'tools/lab/vitest.config.ts',
    '--root',
    '.',
  ];
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${REPORT}`];
  if (withEvents) reporters.push('--reporter=./tools/test/vitest-reporter.mjs');
  return [
    `${exports(env)}${[...vitest, ...reporters, ...filters].map(quoted).join(' ')} 3>${PORTS}.events`,
    'code=$?',
    `[ -f ${REPORT} ] && cat ${REPORT} >${PORTS}.report`,
    'exit $code',
    '',
  ].join('\n');
}

/**
 * A person's shell on the guest's second console, which is our terminal.
 *
 * @param {{ columns?: number, rows?: number }} size
 * @param {Readonly<Record<string, string | undefined>>} env As above.
 */
export function shellScript({ columns = 80, rows = 24 }, env) {
  // The size is lost when the console is opened, so it is set by who holds it open.
  const session = `stty rows ${rows} columns ${columns}; exec bash -il`;
  return [
    `${exports(env)}export TERM=${quoted(env.TERM ?? 'linux')}`,
    // A session of its own, so that the console becomes its controlling terminal.
    `exec setsid -c -w sh -c ${quoted(session)} </dev/hvc0 >/dev/hvc0 2>&1`,
    '',
  ].join('\n');
}

/**
 * vitest's report with the guest's paths turned into ours.
 *
 * @param {string} text JSON.
 * @param {string} guestRoot
 * @param {string} ourRoot
 * @returns {string} JSON.
 */
export function localReport(text, guestRoot, ourRoot) {
  const report = JSON.parse(text);
  for (const result of report.testResults) {
    if (result.name.startsWith(`${guestRoot}/`)) {
      result.name = ourRoot + result.name.slice(guestRoot.length);
    }
  }
  return JSON.stringify(report);
}

/** @param {Readonly<Record<string, string | undefined>>} env */
function exports(env) {
  const passed = Object.entries(env).filter(([name]) =>
    /^(DSEC_\w+|CI|NO_COLOR|FORCE_COLOR)$/.test(name),
  );
  return [...passed, ['DSEC_LAB', '1']]
    .map(([name, value]) => `export ${name}=${quoted(value ?? '')}\n`)
    .join('');
}

/** @param {string} word */
function quoted(word) {
  return `'${word.replaceAll("'", "'\\''")}'`;
}
