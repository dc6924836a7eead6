/**
 * The main job of `npm start`: makes the example layers with the node's own tools, composes them to
 * the root of a
 * sandbox, and says what it did. It runs itself again in a mount namespace of its own, so that the
 * host's table stays
 * as it is. Options: `--state DIR`.
 */
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { asDsecError, DsecError } from '@dsec/std';
import { resolveStatePaths } from './config.ts';
import { runExample } from './examples/run-example.ts';
import { printError } from './output.ts';

const INSIDE = 'DSEC_PRIVATE_MOUNTS';

try {
  const { values } = parseArgs({ options: { state: { type: 'string' } } });
  if (process.getuid?.() !== 0) {
    throw new DsecError('permission-denied', 'mounting layers needs root: run sudo npm start');
  }
  if (process.env[INSIDE] === '1') await runExample(resolveStatePaths(values.state));
  else process.exitCode = runInPrivateMounts();
} catch (thrown) {
  const error = asDsecError(thrown);
  printError(error, false);
  process.exitCode = error.exitCode;
}

function runInPrivateMounts(): number {
  const self = [process.execPath, fileURLToPath(import.meta.url), ...process.argv.slice(2)];
  const { status, error } = spawnSync('unshare', ['--mount', '--propagation=private', ...self], {
    stdio: 'inherit',
    env: { ...process.env, [INSIDE]: '1' },
  });
  if (error !== undefined) {
    throw new DsecError('unsupported', 'unshare is not installed: apt-get install util-linux', {
      cause: error,
    });
  }
  return status ?? 1;
}
