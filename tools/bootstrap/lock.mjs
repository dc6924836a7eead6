// @ts-check
import { spawn } from 'node:child_process';
import { ftruncateSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { BootstrapFailure } from './failure.mjs';

export const LOCK_WAIT_S = 1800;

/**
 * Takes the lock file for this process, waiting for another holder. The kernel drops it with the last
 * descriptor, so a holder that is killed leaves nothing behind; commands that are given the descriptor
 * keep the lock until they too have ended, so that an orphaned `npm ci` still keeps others out.
 *
 * @param {string} path
 * @param {(holder: string) => void} onWait Called once if somebody else holds it.
 * @param {number} [waitS]
 * @returns {Promise<number>} The descriptor.
 */
export async function takeLock(path, onWait, waitS = LOCK_WAIT_S) {
  const fd = openLock(path);
  if (!(await flock(fd, ['-n']))) {
    onWait(readFileSync(path, 'utf8').trim());
    if (!(await flock(fd, ['-w', String(waitS)]))) {
      throw new BootstrapFailure(
        'locked',
        `another bootstrap (${readFileSync(path, 'utf8').trim()}) did not end within ${waitS} s`,
        'wait for it or end it, then start again',
      );
    }
  }
  ftruncateSync(fd);
  writeSync(fd, `process ${process.pid}, started ${new Date().toISOString()}\n`);
  return fd;
}

/** @param {string} path */
function openLock(path) {
  try {
    mkdirSync(dirname(path), { recursive: true });
    return openSync(path, 'a+');
  } catch (cause) {
    const { code } = /** @type {NodeJS.ErrnoException} */ (cause);
    if (code !== 'EACCES' && code !== 'EPERM' && code !== 'EROFS') throw cause;
    throw new BootstrapFailure(
      'rights',
      `this user may not write ${path}, and building needs that`,
      'start it as the owner of the checkout, or make a checkout of your own',
    );
  }
}

/**
 * flock(1) locks the open file that it inherits from us, and the lock stays with our descriptor when it ends.
 *
 * @param {number} fd
 * @param {readonly string[]} how
 * @returns {Promise<boolean>}
 */
function flock(fd, how) {
  return new Promise((resolve, reject) => {
    const child = spawn('flock', [...how, '3'], { stdio: ['ignore', 'ignore', 'inherit', fd] });
    child.on('error', () =>
      reject(new BootstrapFailure('host', 'flock is not in PATH', 'install util-linux')),
    );
    child.on('close', (code) => resolve(code === 0));
  });
}
