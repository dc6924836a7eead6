import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { tryLockFile } from '@dsec/linux';
import { DsecError } from '@dsec/std';

/** `conflict`: there is a `dsec up` for the directory. */
export class StateTaken extends DsecError {
  constructor(stateRoot: string, holder: string) {
    super(
      'conflict',
      `dsec up runs for ${stateRoot} already (process ${holder}): use it, end it with ` +
        `kill ${holder}, or take another --state and --listen`,
    );
  }
}

/**
 * Makes this process the one `dsec up` of a state directory, until it ends or `release` is called.
 * `StateTaken` when there is another.
 */
export function lockState(stateRoot: string): { release(): void } {
  const path = join(stateRoot, 'up.lock');
  const fd = openSync(path, 'a+', 0o600);
  if (!tryLockFile(fd, 'exclusive')) {
    const holder = readFileSync(path, 'utf8').trim();
    closeSync(fd);
    throw new StateTaken(stateRoot, holder);
  }
  ftruncateSync(fd);
  writeSync(fd, `${process.pid}\n`);
  return { release: () => closeSync(fd) };
}
