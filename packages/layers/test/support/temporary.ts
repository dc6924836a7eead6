import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DsecError } from '@dsec/std';
import { afterAll, onTestFinished } from 'vitest';

/** A directory of this test alone, removed when it ends. */
export async function temporaryDirectory(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'dsec-layers-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

/** The code with which a promise rejects, or `no error`. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
  } catch (thrown) {
    return thrown instanceof DsecError ? thrown.code : String(thrown);
  }
  return 'no error';
}

/** The same for a whole test file: call it at the top level or in `beforeAll`. */
export async function temporaryDirectoryOfFile(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'dsec-layers-'));
  afterAll(() => rm(path, { recursive: true, force: true }));
  return path;
}
