/**
 * Archives that are small and claim to be large (THREATS C12, row 33): each is refused with `import-limit` in
 * less than 256 MiB, decoder included, or imported in less than that where it is only odd.
 */
import { execFileSync, spawn } from 'node:child_process';
import { createWriteStream, mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import {
  base256,
  gnuLong,
  type PaxRecords,
  paxHeader,
  TAR_END,
  tarHeader,
  tarMember,
} from '../../packages/layers/test/sources/tar-encoder.ts';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';

const isLong = process.env.DSEC_TEST_LONG === '1';
const MEMORY_MIB_MAX = 256;
/** A heap that would let the limit be passed only outside of it. */
const HEAP_MIB = 192;
const BOMB = join(import.meta.dirname, 'tar-bomb.mjs');

const work = mkdtempSync(join(tmpdir(), 'dsec-tar-bombs-'));
afterAll(() => rmSync(work, { recursive: true, force: true }));
compileFirst();

interface Outcome {
  readonly code: string;
  readonly message: string;
  readonly ownMib: number;
  readonly decoderMib: number;
}

function importApart(path: string): Promise<Outcome> {
  const args = [`--max-old-space-size=${HEAP_MIB}`, BOMB, path, join(work, 'blob')];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  return new Promise((resolve, reject) => {
    let out = '';
    let err = '';
    child.stdout.on('data', (text) => {
      out += text;
    });
    child.stderr.on('data', (text) => {
      err += text;
    });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      if (code === 0) resolve(JSON.parse(out));
      else reject(new Error(`ended with ${signal ?? code}: ${err.slice(-2000)}`));
    });
  });
}

/** Writes what a generator yields, many small parts at a time, plain or compressed. */
async function write(
  name: string,
  parts: Iterable<Buffer>,
  packed: 'plain' | 'gzip',
  level = 1,
): Promise<string> {
  const path = join(work, name);
  const source = Readable.from(batches(parts));
  const target = createWriteStream(path);
  if (packed === 'gzip') await pipeline(source, createGzip({ level }), target);
  else await pipeline(source, target);
  return path;
}

function* batches(parts: Iterable<Buffer>): Generator<Buffer> {
  let batch: Buffer[] = [];
  let length = 0;
  for (const part of parts) {
    batch.push(part);
    length += part.length;
    if (length < 1 << 20) continue;
    yield Buffer.concat(batch);
    batch = [];
    length = 0;
  }
  yield Buffer.concat(batch);
}

async function refuses(path: string, code = 'import-limit'): Promise<void> {
  const outcome = await importApart(path);
  rmSync(path);
  const { ownMib, decoderMib, message } = outcome;
  console.log(`${ownMib.toFixed(0)} + ${decoderMib.toFixed(0)} MiB: ${message.slice(0, 80)}`);
  expect(outcome.code).toBe(code);
  expect(ownMib + decoderMib).toBeLessThan(MEMORY_MIB_MAX);
}

function* repeated(count: number, make: (i: number) => Buffer): Generator<Buffer> {
  for (let i = 0; i < count; i += 1) yield make(i);
  yield TAR_END;
}

describe('compression', () => {
  const zeros = 16 * 2 ** 30;

  it('gzip, 1 : 1,000', async () => {
    const head = tarHeader({ name: 'f', size: base256(BigInt(zeros), 12) });
    const block = Buffer.alloc(1 << 20);
    function* parts() {
      yield head;
      for (let i = 0; i < (isLong ? 4096 : 256); i += 1) yield block;
    }
    const path = await write('gzip', parts(), 'gzip', 6);
    expect(statSync(path).size).toBeLessThan(300_000 * (isLong ? 16 : 1));
    await refuses(path);
  });

  it('zstd, 1 : 10,000 and more, with the largest window', async () => {
    const head = tarHeader({ name: 'f', size: base256(BigInt(zeros), 12) }).toString('base64');
    const path = join(work, 'zstd');
    const length = isLong ? zeros : zeros / 16;
    const content = `printf %s '${head}' | base64 -d; head -c ${length} /dev/zero`;
    const script = `(${content}) | zstd -q --ultra --long=26 -o "$0"`;
    execFileSync('sh', ['-c', script, path]);
    expect(statSync(path).size).toBeLessThan(length / 10_000);
    await refuses(path);
  });

  it('zstd frames that ask for a huge window', async () => {
    const path = join(work, 'window');
    execFileSync('sh', [
      '-c',
      'head -c 600000000 /dev/zero | zstd -q --ultra --long=30 -o "$0"',
      path,
    ]);
    await refuses(path);
  });

  it('a compressed file in a compressed tar is content', async () => {
    const inner = await write(
      'inner',
      repeated(200, () => Buffer.alloc(1 << 20)),
      'gzip',
    );
    const bytes = execFileSync('cat', [inner]);
    const path = await write('outer', [tarMember({ name: 'f.gz' }, bytes), TAR_END], 'gzip');
    await refuses(path, 'ok');
  });
});

describe('sizes', () => {
  const claim = (...headers: Buffer[]) => [...headers, TAR_END];
  const pax = (records: PaxRecords) => claim(paxHeader(records), tarHeader({ name: 'f' }));
  const hole = (size: number) =>
    pax([
      ['GNU.sparse.size', `${size}`],
      ['GNU.sparse.map', `${size},0`],
    ]);
  const terabyte = base256(2n ** 40n, 12);

  it.each<[string, Buffer[], string]>([
    ['8 GiB in a pax record', pax([['size', `${8 * 2 ** 30}`]]), 'import-invalid'],
    ['2^53 in a pax record', pax([['size', `${2 ** 53}`]]), 'import-limit'],
    ['2^64 in a pax record', pax([['size', `${2n ** 64n - 1n}`]]), 'import-limit'],
    ['1 TiB in base 256', claim(tarHeader({ name: 'f', size: terabyte })), 'import-limit'],
    [
      '1 TiB of pax records',
      claim(tarHeader({ name: 'x', type: 'x', size: terabyte })),
      'import-limit',
    ],
    [
      '1 TiB of a long name',
      claim(tarHeader({ name: 'x', type: 'L', size: terabyte })),
      'import-limit',
    ],
    ['1 TiB in a hole', hole(2 ** 40), 'import-limit'],
    ['8 EiB in a hole', pax([['GNU.sparse.realsize', `${2n ** 63n}`]]), 'import-limit'],
  ])('%s', async (_, parts, code) => {
    await refuses(await write('size', parts, 'plain'), code);
  });

  it('of many holes', async () => {
    const member = Buffer.concat(hole(2 ** 35).slice(0, 2));
    await refuses(
      await write(
        'holes',
        repeated(1000, () => member),
        'plain',
      ),
    );
  });
});

describe('floods', () => {
  it('of entries', async () => {
    const entry = (i: number) => tarHeader({ name: `d${i % 1000}/${i}` });
    await refuses(await write('entries', repeated(310_000, entry), 'gzip'));
  });

  it('of entries of one name', async () => {
    const entry = tarHeader({ name: 'same' });
    const varied = (i: number) => (i % 50 === 0 ? tarHeader({ name: `${i}` }) : entry);
    await refuses(await write('same', repeated(310_000, varied), 'gzip', 1));
  });

  it('of directories on the way', async () => {
    const deep = (i: number) =>
      Buffer.concat([gnuLong('L', `${i}/`.repeat(500)), tarHeader({ name: 'x' })]);
    await refuses(await write('deep', repeated(700, deep), 'gzip'));
  });

  it('of depth', async () => {
    const path = Buffer.concat([gnuLong('L', 'd/'.repeat(2000)), tarHeader({ name: 'x' })]);
    await refuses(await write('depth', [path, TAR_END], 'plain'));
  });

  it('of extended headers without a member', async () => {
    const header = paxHeader([['comment', 'x'.repeat(400)]], 'g');
    await refuses(
      await write(
        'globals',
        repeated(10_000, () => header),
        'plain',
      ),
    );
    if (!isLong) return;
    const empty = tarHeader({ name: 'g', type: 'g' });
    await refuses(
      await write(
        'empty',
        repeated(2_000_100, () => empty),
        'plain',
      ),
    );
  });

  it('of long names and long targets', async () => {
    const name = (i: number) =>
      Buffer.concat([gnuLong('L', `${i}`.padEnd(255, 'n')), tarHeader({ name: 'x' })]);
    await refuses(await write('names', repeated(200_000, name), 'gzip'));
    const target = (i: number) =>
      Buffer.concat([gnuLong('K', 't'.repeat(4000)), tarHeader({ name: `${i}`, type: '2' })]);
    await refuses(await write('targets', repeated(20_000, target), 'plain'));
  });

  it('of short names at the end of long paths', async () => {
    const path = (i: number) =>
      Buffer.concat([gnuLong('L', `${'d/'.repeat(1000)}${i} and more`), tarHeader({ name: 'x' })]);
    await refuses(await write('paths', repeated(20_000, path), 'plain'), 'ok');
  });

  it('of large attributes', async () => {
    const value = (i: number) => `${i}`.padEnd(50_000, 'x');
    const entry = (i: number) =>
      Buffer.concat([paxHeader([['SCHILY.xattr.user.a', value(i)]]), tarHeader({ name: `${i}` })]);
    await refuses(await write('xattrs', repeated(700, entry), 'plain'));
  });

  it('of small attributes', async () => {
    const records = (i: number) =>
      Array.from({ length: 256 }, (_, j) => [`SCHILY.xattr.user.${i}.${j}`, ''] as const);
    const entry = (i: number) =>
      Buffer.concat([paxHeader(records(i)), tarHeader({ name: `${i}` })]);
    await refuses(await write('small', repeated(1200, entry), 'plain'));
    const many = Array.from({ length: 5000 }, (_, j) => [`SCHILY.xattr.user.${j}`, ''] as const);
    const one = [paxHeader(many), tarHeader({ name: 'f' }), TAR_END];
    await refuses(await write('many', one, 'plain'));
  });

  it('of dropped attributes', async () => {
    const records = Array.from(
      { length: 256 },
      (_, j) => [`SCHILY.xattr.trusted.${j}`, ''] as const,
    );
    const header = paxHeader(records);
    const entry = (i: number) => Buffer.concat([header, tarHeader({ name: `${i}` })]);
    await refuses(await write('dropped', repeated(isLong ? 10_000 : 2000, entry), 'plain'), 'ok');
    const everywhere = [paxHeader(records, 'g')];
    const plain = Array.from({ length: 5000 }, (_, i) => tarHeader({ name: `${i}` }));
    await refuses(await write('global', [...everywhere, ...plain, TAR_END], 'plain'), 'ok');
  });

  it('of pieces of a sparse file', async () => {
    const count = 300_000;
    const map = `${count}\n${'0\n0\n'.repeat(count)}`;
    const records: PaxRecords = [
      ['GNU.sparse.major', '1'],
      ['GNU.sparse.minor', '0'],
      ['GNU.sparse.realsize', '1000000000'],
    ];
    const parts = [paxHeader(records), tarMember({ name: 'f' }, map), TAR_END];
    await refuses(await write('pieces', parts, 'plain'));
  });

  it('of pieces of many sparse files', async () => {
    const count = 40_000;
    const list = Array.from({ length: count }, (_, i) => `${i * 4096},1`).join(',');
    const records: PaxRecords = [
      ['GNU.sparse.size', `${count * 4096}`],
      ['GNU.sparse.map', list],
    ];
    const file = (i: number) =>
      Buffer.concat([paxHeader(records), tarMember({ name: `${i}` }, Buffer.alloc(count, `${i}`))]);
    await refuses(await write('many', repeated(isLong ? 100 : 5, file), 'plain'), 'ok');
  });
});
