import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

/** A directory that goes away with the test file. */
export function scratchDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), 'dsec-linux-'));
  afterAll(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

export const isRoot = process.getuid?.() === 0;
