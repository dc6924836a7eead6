import { randomBytes } from 'node:crypto';
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from 'node:fs';

/** Writes a file that only its owner can read: whole or not at all, in place of what was there. */
export function writePrivateFile(path: string, text: string): void {
  const staged = `${path}.${randomBytes(6).toString('hex')}`;
  const descriptor = openSync(staged, 'wx', 0o600);
  try {
    writeSync(descriptor, text);
    fsyncSync(descriptor);
    renameSync(staged, path);
  } catch (thrown) {
    rmSync(staged, { force: true });
    throw thrown;
  } finally {
    closeSync(descriptor);
  }
}
