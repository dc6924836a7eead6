import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'vitest';
import { openSqliteStore } from '../src/index.ts';
import { BOUNDS, runCase, storeConformance } from './harness.ts';

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'dsec-store-'));
});
afterEach(() => {
  rmSync(directory, { recursive: true });
});

describe('SQLite store', () => {
  for (const { name, run } of storeConformance) {
    it(name, () =>
      runCase(run, (clock) =>
        openSqliteStore({ path: join(directory, 'store.db'), clock, bootId: 'boot', ...BOUNDS }),
      ),
    );
  }
});
