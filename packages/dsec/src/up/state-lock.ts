import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { tryLockFile } from '@dsec/linux';
import { DsecError } from '@dsec/std';

/**
 * Makes this process the one `dsec up` of a state directory, until it ends or `release` is called.
 * `conflict` when there is another.
 */
export function lockState(stateRoot: string): { release(): void } {
  const path = join(stateRoot, 'up.lock');
  const fd = openSync(path, 'a+', 0o600);
  if (!tryLockFile(fd, 'exclusive')) {
    const holder = readFileSync(path, 'utf8').trim();
    closeSync(fd);
    throw new DsecError(
      'conflict',
      `dsec up runs for ${stateRoot} already (process ${holder}): use it, end it with ` +
        `kill ${holder}, or take another --state and --listen`,
    );
  }
  ftruncateSync(fd);
  writeSync(fd, `${process.pid}\n`);
  return { release: () => closeSync(fd) };
}
