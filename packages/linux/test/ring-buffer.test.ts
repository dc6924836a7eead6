import { closeSync, ftruncateSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openRingBuffer, pageBytes } from '../src/ring-buffer.ts';

const PAGE = pageBytes();
const [BUSY, DISCARDED] = [0x8000_0000, 0x4000_0000];

/** A file that lies as the kernel's ring does: reader, writers, data twice. */
function ring(dataBytes: number) {
  const directory = mkdtempSync(join(tmpdir(), 'dsec-ring-'));
  const fd = openSync(join(directory, 'ring'), 'w+');
  ftruncateSync(fd, 2 * PAGE + 2 * dataBytes);
  onTestFinished(() => {
    closeSync(fd);
    rmSync(directory, { recursive: true });
  });
  let end = 0;
  const put = (at: number, bytes: Buffer) => {
    for (const [index, byte] of bytes.entries()) {
      const place = 2 * PAGE + ((at + index) % dataBytes);
      for (const copy of [0, dataBytes]) writeSync(fd, Buffer.from([byte]), 0, 1, place + copy);
    }
  };
  const write = (text: string, flags = 0) => {
    const header = Buffer.alloc(8);
    header.writeUInt32LE((flags | text.length) >>> 0, 0);
    const at = end;
    put(at, Buffer.concat([header, Buffer.from(text)]));
    end += 8 * Math.ceil((8 + text.length) / 8);
    const position = Buffer.alloc(8);
    position.writeBigUInt64LE(BigInt(end));
    writeSync(fd, position, 0, 8, PAGE);
    return at;
  };
  const finish = (at: number, length: number) => {
    const header = Buffer.alloc(4);
    header.writeUInt32LE(length);
    put(at, header);
  };
  const buffer = openRingBuffer(fd, dataBytes);
  onTestFinished(() => buffer.close());
  const read = (countMax = 100) => {
    const texts: string[] = [];
    buffer.read((record) => texts.push(record.toString()), countMax);
    return texts;
  };
  return { write, finish, read, buffer };
}

test('records come once and in order, at most so many at once', () => {
  const { write, read } = ring(PAGE);
  for (const text of ['one', 'two', '', 'a longer one']) write(text);
  expect(read(1)).toEqual(['one']);
  expect(read()).toEqual(['two', '', 'a longer one']);
  expect(read()).toEqual([]);
});

test('one that is being written holds up what is behind it; a discarded one is left out', () => {
  const { write, finish, read } = ring(PAGE);
  write('gone', DISCARDED);
  const at = write('busy', BUSY);
  write('behind');
  expect(read()).toEqual([]);
  finish(at, 4);
  expect(read()).toEqual(['busy', 'behind']);
});

test('records that wrap are whole, round after round', () => {
  const { write, read } = ring(PAGE);
  for (let i = 0; i < 60; i += 1) {
    const text = `${i} ${'x'.repeat(300)}`;
    write(text);
    expect(read()).toEqual([text]);
  }
});

test('a closed one has nothing more', () => {
  const { write, read, buffer } = ring(PAGE);
  write('late');
  buffer.close();
  expect(read()).toEqual([]);
});
