import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';

const DIRECTORY = 'tools';
const FILES_MAX = 64;

/**
 * Copies the platform's tools below the state root, where the launcher may bind them, under a name of their
 * content: sandboxes that run keep what they have. Returns the path below the state root.
 */
export function installPlatformTools(stateRoot: string, source: string): string {
  const names = readdirSync(source).sort().slice(0, FILES_MAX);
  const files = names.map((name) => ({ name, data: readFileSync(join(source, name)) }));
  const hash = createHash('sha256');
  for (const { name, data } of files) hash.update(`${name}\0${data.length}\0`).update(data);
  const path = join(DIRECTORY, hash.digest('hex').slice(0, 32));
  const target = join(stateRoot, path);
  if (existsSync(target)) return path;
  mkdirSync(join(stateRoot, DIRECTORY), { recursive: true, mode: 0o700 });
  const temporary = mkdtempSync(join(stateRoot, DIRECTORY, '.new-'));
  try {
    for (const { name, data } of files) {
      writeFileSync(join(temporary, name), data, { flag: 'wx' });
      chmodSync(join(temporary, name), 0o555);
    }
    chmodSync(temporary, 0o555);
    renameSync(temporary, target);
  } catch (thrown) {
    rmSync(temporary, { recursive: true, force: true });
    // Another process has put the same there.
    if (!existsSync(target)) throw thrown;
  }
  return path;
}
