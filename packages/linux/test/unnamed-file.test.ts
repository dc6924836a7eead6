import {
  closeSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { linkOpenFile, O_TMPFILE } from '../src/index.ts';

it('a file without a name is seen when it is given one, and replaces nothing', () => {
  const root = mkdtempSync(join(tmpdir(), 'dsec-unnamed-'));
  const fd = openSync(root, O_TMPFILE | 1, 0o600);
  try {
    writeSync(fd, 'whole');
    expect(readdirSync(root)).toEqual([]);
    linkOpenFile(fd, join(root, 'name'));
    expect(readFileSync(join(root, 'name'), 'utf8')).toBe('whole');
    expect(() => linkOpenFile(fd, join(root, 'name'))).toThrow(
      expect.objectContaining({ code: 'already-exists' }),
    );
  } finally {
    closeSync(fd);
    rmSync(root, { recursive: true });
  }
});
