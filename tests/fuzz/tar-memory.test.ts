/**
 * The memory of an import at the default limits (THREATS C12): what `dsec layer import` starts, the importing
 * process and its decoder together, stays below 256 MiB for the worst trees that the limits let in.
 */
import { execFileSync } from 'node:child_process';
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { checkMemory, importByCommand } from './import-memory.ts';
import { FLOODS, type Flood, inBatches } from './tar-floods.ts';

const isLong = process.env.DSEC_TEST_LONG === '1';

const work = mkdtempSync(join(tmpdir(), 'dsec-tar-memory-'));
const state = join(work, 'state');
const archive = join(work, 'archive.tar');
afterAll(() => rmSync(work, { recursive: true, force: true }));
afterEach(() => rmSync(state, { recursive: true, force: true }));
compileFirst();

async function write({ parts, countMax }: Flood): Promise<void> {
  const members = inBatches(parts(countMax));
  await pipeline(Readable.from(members), createWriteStream(archive));
}

const options = { timeout: isLong ? 600_000 : 120_000 };

describe('an import stays below 256 MiB with', () => {
  // All shapes take minutes; by default the three that take most.
  const shapes = FLOODS.filter((flood) => isLong || flood.isWorst);
  it.each(shapes.map((flood) => [flood.name, flood] as const))('%s', options, async (_, flood) => {
    await write(flood);
    checkMemory(await importByCommand(state, archive), flood.accepts);
  });

  it.each(['directories with names of 20 bytes', 'files with many different attributes'])(
    'a window of zstd as large as the limit, and %s',
    options,
    async (shape) => {
      const flood = FLOODS.find(({ name }) => name === shape);
      if (flood === undefined) throw new Error('the shape is gone');
      await write(flood);
      const packed = join(work, 'archive.tar.zst');
      execFileSync('zstd', ['-q', '-f', '-1', '--long=26', archive, '-o', packed]);
      const outcome = await importByCommand(state, packed);
      checkMemory(outcome, true);
      expect(outcome.decoderMib).toBeGreaterThan(50);
      execFileSync('zstd', ['-q', '-f', '-1', '--long=27', archive, '-o', packed]);
      checkMemory(await importByCommand(state, packed), false);
    },
  );
});
