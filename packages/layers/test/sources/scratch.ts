import { execFileSync } from 'node:child_process';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect } from 'vitest';

/**
 * A directory that goes away with the test file, however deep what is in it (Node's own removal goes by
 * path).
 */
export function scratchDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), 'dsec-sources-'));
  afterAll(() => {
    execFileSync('rm', ['-rf', path]);
  });
  return path;
}

export const isRoot = process.getuid?.() === 0;

/** Matches a thrown `DsecError` by its code and, where given, a part of its message. */
export function errorWith(code: string, message?: RegExp): Error {
  return expect.objectContaining(
    message === undefined ? { code } : { code, message: expect.stringMatching(message) },
  );
}
