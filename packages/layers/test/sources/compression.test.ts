import { execFileSync, spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { createSeededRandom, MIB } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import type { ByteSource } from '../../src/sources/byte-source.ts';
import { compressionOf, type InputOptions, openInput } from '../../src/sources/compression.ts';
import { IMPORT_LIMITS_DEFAULT } from '../../src/sources/limits.ts';
import { createPace } from '../../src/sources/pace.ts';
import { errorWith, scratchDirectory } from './scratch.ts';

const directory = scratchDirectory();
const random = Buffer.from(createSeededRandom(1).bytes(700_000));
/** Compressible, and longer than any buffer on the way. */
const content = Buffer.concat([random, Buffer.alloc(2 * MIB, 'text '), random]);
const limits = IMPORT_LIMITS_DEFAULT;

function zstd(bytes: Buffer, ...options: string[]): Buffer {
  const input = bytes.length === 0 ? Buffer.alloc(0) : bytes;
  return execFileSync('zstd', ['-qc', ...options], { input, maxBuffer: 64 * MIB });
}

let files = 0;
function fileOf(bytes: Buffer): number {
  files += 1;
  const path = join(directory, `${files}`);
  writeFileSync(path, bytes);
  return openSync(path, 'r');
}

async function readAll(source: ByteSource): Promise<Buffer> {
  const parts: Buffer[] = [];
  while ((await source.fill(1)) > 0) parts.push(Buffer.from(source.take(source.buffered)));
  await source.close();
  return Buffer.concat(parts);
}

async function decode(bytes: Buffer, options: Partial<InputOptions> = {}): Promise<Buffer> {
  const fd = fileOf(bytes);
  try {
    const { source } = await openInput(fd, { limits, pace: createPace(), ...options });
    return await readAll(source);
  } finally {
    closeSync(fd);
  }
}

/** A zstd skippable frame. */
const skippable = Buffer.concat([
  Buffer.from([0x53, 0x2a, 0x4d, 0x18, 5, 0, 0, 0]),
  Buffer.from('hello'),
]);

describe('what is decoded', () => {
  it.each<[string, Buffer, Buffer]>([
    ['nothing', Buffer.alloc(0), Buffer.alloc(0)],
    ['three bytes', Buffer.from('abc'), Buffer.from('abc')],
    ['plain bytes', content, content],
    ['gzip', gzipSync(content), content],
    [
      'gzip members one after another',
      Buffer.concat([gzipSync(random), gzipSync(''), gzipSync(content)]),
      Buffer.concat([random, content]),
    ],
    [
      'gzip with padding after it',
      Buffer.concat([gzipSync(content), Buffer.alloc(3 * MIB)]),
      content,
    ],
    ['zstd', zstd(content), content],
    [
      'zstd frames one after another',
      Buffer.concat([
        skippable,
        zstd(random, '-19'),
        skippable,
        zstd(content, '--fast'),
        zstd(random),
      ]),
      Buffer.concat([random, content, random]),
    ],
    ['zstd with the largest window', zstd(content, '--ultra', '--long=26'), content],
  ])('%s', async (_, stored, expected) => {
    expect((await decode(stored)).equals(expected)).toBe(true);
  });

  it('takes a part of a file, and shows what it read', async () => {
    const stored = gzipSync(content);
    const around = Buffer.concat([random, stored, random]);
    const range = { start: random.length, end: random.length + stored.length };
    const seen: Buffer[] = [];
    const shown: Buffer[] = [];
    const pace = createPace();
    await decode(around, {
      range,
      pace,
      onStored: (bytes) => seen.push(Buffer.from(bytes)),
      onContent: (bytes) => shown.push(Buffer.from(bytes)),
    });
    expect(Buffer.concat(seen).equals(stored)).toBe(true);
    expect(Buffer.concat(shown).equals(content)).toBe(true);
    expect(pace.bytes).toBe(stored.length);
  });
});

describe('what is refused', () => {
  const cut = (bytes: Buffer) => bytes.subarray(0, bytes.length - 20);
  const damaged = (bytes: Buffer) => {
    const copy = Buffer.from(bytes);
    copy.fill(0x55, copy.length - 500_000, copy.length - 499_000);
    return copy;
  };
  it.each<[string, Buffer, string]>([
    ['gzip that is cut', cut(gzipSync(content)), 'import-invalid'],
    ['gzip that is damaged', damaged(gzipSync(content)), 'import-invalid'],
    ['zstd that is cut', cut(zstd(content)), 'import-invalid'],
    ['zstd that is damaged', damaged(zstd(content, '--check')), 'import-invalid'],
    ['zstd with garbage after it', Buffer.concat([zstd(content), random]), 'import-invalid'],
    [
      'zstd whose window is too large',
      zstd(content, '--ultra', '--long=28', '--no-check'),
      'import-limit',
    ],
  ])('%s', async (_, stored, code) => {
    await expect(decode(stored)).rejects.toThrowError(errorWith(code));
  });

  it.each<[string, (bytes: Buffer) => Buffer]>([
    ['gzip', gzipSync],
    ['zstd', zstd],
  ])('a %s bomb, by ratio and by size', async (_, compress) => {
    const bomb = compress(Buffer.alloc(32 * MIB));
    const low = { ...limits, expansionFreeBytes: MIB };
    await expect(decode(bomb, { limits: low })).rejects.toThrowError(
      errorWith('import-limit', /expands more than 256 times/),
    );
    const small = { ...limits, streamBytesMax: 3 * MIB };
    await expect(decode(compress(content), { limits: small })).rejects.toThrowError(
      errorWith('import-limit', /3.0 MiB/),
    );
    expect((await decode(bomb)).length).toBe(32 * MIB);
  });

  it('a directory', async () => {
    const fd = openSync(directory, 'r');
    await expect(openInput(fd, { limits, pace: createPace() })).rejects.toThrowError(
      errorWith('invalid-argument'),
    );
    closeSync(fd);
  });
});

describe('a pipe', () => {
  /** A pipe that a process writes to, as a descriptor of ours. */
  function pipeFrom(script: string): { fd: number; end: () => void } {
    const path = join(directory, `pipe${files++}`);
    execFileSync('mkfifo', [path]);
    const writer = spawn('sh', ['-c', `exec > "$1"; ${script}`, 'sh', path], { stdio: 'ignore' });
    return { fd: openSync(path, 'r'), end: () => writer.kill('SIGKILL') };
  }

  it.each(['cat', 'gzip', 'zstd'])('through %s', async (command) => {
    const path = join(directory, 'piped');
    writeFileSync(path, content);
    const { fd } = pipeFrom(`${command} < '${path}'`);
    const { source } = await openInput(fd, { limits, pace: createPace() });
    expect((await readAll(source)).equals(content)).toBe(true);
  });

  it('that comes byte by byte', async () => {
    const { fd } = pipeFrom('for c in a b c d e; do printf $c; sleep 0.02; done');
    const { source, compression } = await openInput(fd, { limits, pace: createPace() });
    expect(compression).toBe('none');
    expect((await readAll(source)).toString()).toBe('abcde');
  });

  it.each([
    ['plain', 'printf 12345; sleep 60'],
    ['gzip', '(printf 12345; sleep 60) | gzip'],
    ['zstd', 'printf "\\050\\265\\057\\375"; sleep 60'],
  ])('that stalls can be abandoned: %s', async (_, script) => {
    const { fd, end } = pipeFrom(script);
    const abort = new AbortController();
    setTimeout(() => abort.abort(), 200);
    const reading = (async () => {
      const pace = createPace({ signal: abort.signal });
      const { source } = await openInput(fd, { limits, pace });
      try {
        await readAll(source);
      } finally {
        await source.close();
      }
    })();
    await expect(reading).rejects.toThrowError(errorWith('cancelled'));
    end();
    expect(zstdChildren()).toEqual([]);
  });
});

/** Command lines of this process's children that decode zstd. */
function zstdChildren(): string[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    try {
      const status = readFileSync(`/proc/${pid}/status`, 'utf8');
      const command = readFileSync(`/proc/${pid}/cmdline`, 'latin1');
      const isOurs = status.includes(`PPid:\t${process.pid}\n`) && !status.includes('State:\tZ');
      return isOurs && command.includes('zstd') ? [command] : [];
    } catch {
      return [];
    }
  });
}

it('leaves no process behind when a source is closed early', async () => {
  const fd = fileOf(zstd(Buffer.alloc(50 * MIB, 'text ')));
  const { source } = await openInput(fd, { limits, pace: createPace() });
  await source.fill(10);
  expect(zstdChildren().length).toBe(1);
  await source.close();
  await expect.poll(zstdChildren).toEqual([]);
  closeSync(fd);
});

it('says what is missing when zstd is', async () => {
  const fd = fileOf(zstd(content));
  const path = process.env.PATH;
  process.env.PATH = '/nonexistent';
  try {
    const { source } = await openInput(fd, { limits, pace: createPace() });
    await expect(readAll(source)).rejects.toThrowError(errorWith('unsupported'));
  } finally {
    process.env.PATH = path;
    closeSync(fd);
  }
});

it.each<[string, number[], ReturnType<typeof compressionOf>]>([
  ['too short', [0x1f, 0x8b, 8], 'none'],
  ['gzip', [0x1f, 0x8b, 8, 0], 'gzip'],
  ['zstd', [0x28, 0xb5, 0x2f, 0xfd], 'zstd'],
  ['skippable zstd', [0x5f, 0x2a, 0x4d, 0x18], 'zstd'],
  ['compress(1)', [0x1f, 0x9d, 0x90, 0], 'none'],
])('knows the magic: %s', (_, magic, expected) => {
  expect(compressionOf(Buffer.from(magic))).toBe(expected);
});
