import { spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { lockFile } from '@dsec/linux';
import { beforeAll } from 'vitest';

const PACKAGE = join(import.meta.dirname, '..', '..');

/**
 * Workers are processes that run the compiled package, so a test that starts one compiles it first. Quick
 * when nothing has changed; one test file at a time.
 */
export function compileFirst(directory: string = PACKAGE): void {
  // The guest of the lab has what its host compiled.
  if (process.env.DSEC_LAB === '1') return;
  beforeAll(async () => {
    const lock = openSync(join(directory, 'tsconfig.json'), 'r');
    try {
      await lockFile(lock, 'exclusive', { timeoutMs: 110_000 });
      const result = spawnSync('npx', ['tsc', '-b', directory], { encoding: 'utf8' });
      if (result.status !== 0) throw new Error(`tsc: ${result.stdout}${result.stderr}`);
    } finally {
      closeSync(lock);
    }
  }, 120_000);
}
