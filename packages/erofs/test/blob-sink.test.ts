import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { createFileBlobSink } from '../src/index.ts';

let directory: string;
let path: string;
let fd: number;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'dsec-blob-'));
  path = join(directory, 'blob');
  fd = openSync(path, 'w+');
});
afterEach(() => {
  closeSync(fd);
  rmSync(directory, { recursive: true });
});

it('writes one piece after another from the start of the file', () => {
  const sink = createFileBlobSink(fd);
  sink.append(Buffer.alloc(4096, 'a'));
  sink.append(Buffer.alloc(8192, 'b'));
  sink.flush();
  expect(sink.bytesWritten).toBe(12_288);
  expect(readFileSync(path, 'latin1')).toBe('a'.repeat(4096) + 'b'.repeat(8192));
});

it('overwrites what is discarded with zeros', () => {
  const sink = createFileBlobSink(fd);
  sink.append(Buffer.alloc(12_288, 'x'));
  sink.discard(1, 1);
  expect(readFileSync(path, 'latin1')).toBe(
    'x'.repeat(4096) + '\0'.repeat(4096) + 'x'.repeat(4096),
  );
});

it('leaves discarding to whoever can punch holes', () => {
  const punch = vi.fn();
  const sink = createFileBlobSink(fd, punch);
  sink.append(Buffer.alloc(12_288, 'x'));
  sink.discard(1, 2);
  expect(punch.mock.calls).toEqual([[fd, 4096, 8192]]);
});

it('tells why a write failed', () => {
  const readOnly = openSync(path, 'r');
  try {
    const sink = createFileBlobSink(readOnly);
    expect(() => sink.append(Buffer.alloc(4096))).toThrow(
      expect.objectContaining({ name: 'DsecError' }),
    );
  } finally {
    closeSync(readOnly);
  }
});
