/**
 * Mutated tars: a tree or a typed error, in bounded time, and never a path that leads out (THREATS row 35).
 */
import { type BlobSink, createLayerBuilder, type LayerBuilder } from '@dsec/erofs';
import { IMPORT_LIMITS_DEFAULT } from '@dsec/layers';
import { createSeededRandom, DsecError } from '@dsec/std';
import { expect, it } from 'vitest';
import { createPace, importTar } from '../../packages/layers/test/sources/internals.ts';
import {
  createRecordingBuilder,
  type RecordingBuilder,
} from '../../packages/layers/test/sources/recording-builder.ts';
import { memorySource } from '../../packages/layers/test/sources/tar-encoder.ts';
import { mutatedArchive, SEEDS } from './tar-mutations.ts';

const SEED = Number(process.env.SEED ?? 7);
const isLong = process.env.DSEC_TEST_LONG === '1';
const runs = isLong ? 1_000_000 : 30_000;
const timeout = isLong ? 3_600_000 : 300_000;
const limits = {
  ...IMPORT_LIMITS_DEFAULT,
  entriesMax: 2000,
  contentBytesMax: 2 ** 24,
  fileBytesMax: 2 ** 23,
  paxBytesMax: 2 ** 16,
};

async function outcomeOf(archive: Buffer, builder: LayerBuilder): Promise<string> {
  try {
    await importTar(memorySource(archive, 4096), builder, { limits, pace: createPace() });
    return 'ok';
  } catch (thrown) {
    if (thrown instanceof DsecError) return thrown.code;
    throw thrown;
  }
}

const BAD_PATH = /(?:^|\/)(?:\.{0,2})(?:\/|$)/;

/** What a source promises a builder, whatever it read. */
function checkCalls({ calls, attributes }: RecordingBuilder, archive: Buffer): void {
  expect(calls.length).toBeLessThan(20 + archive.length / 2);
  for (const path of attributes.keys()) {
    if (path !== '' && (BAD_PATH.test(path) || path.includes('\0')))
      throw new Error(`path ${path}`);
  }
  for (const { mode, mtimeSec, mtimeNsec } of attributes.values()) {
    const fine =
      (mode & ~0o7777) === 0 && Number.isSafeInteger(mtimeSec) && mtimeNsec >= 0 && mtimeNsec < 1e9;
    if (!fine) throw new Error(`attributes ${mode} ${mtimeSec} ${mtimeNsec}`);
  }
}

async function runMany(
  count: number,
  one: (archive: Buffer) => Promise<string>,
): Promise<Map<string, number>> {
  const counts = new Map<string, number>();
  for (let i = 0; i < count; i += 1) {
    const archive = mutatedArchive(createSeededRandom(SEED * 1_000_003 + i));
    const outcome = await one(archive).catch((error: unknown) => {
      throw new Error(`SEED=${SEED}, run ${i}: ${archive.toString('base64').slice(0, 8000)}`, {
        cause: error,
      });
    });
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  }
  return counts;
}

it('has starting points that can be read', async () => {
  for (const seed of SEEDS) expect(await outcomeOf(seed, createRecordingBuilder())).toBe('ok');
});

it('ends with a tree or a typed error', { timeout }, async () => {
  const counts = await runMany(runs, async (archive) => {
    const builder = createRecordingBuilder({
      entriesMax: limits.entriesMax,
      contentBytesMax: limits.contentBytesMax,
      keptBytesMax: 0,
    });
    const outcome = await outcomeOf(archive, builder);
    checkCalls(builder, archive);
    return outcome;
  });
  console.log(Object.fromEntries(counts));
  expect([...counts.keys()].sort()).toEqual(['import-invalid', 'import-limit', 'ok']);
  // The changes are neither all harmless nor all fatal at the first header.
  expect(counts.get('ok')).toBeGreaterThan(runs / 50);
  expect(counts.get('import-limit')).toBeGreaterThan(runs / 1000);
});

it('gives only what the builder can make a layer of', { timeout }, async () => {
  const nowhere: BlobSink = { append() {}, discard() {}, flush() {} };
  const counts = await runMany(runs / 50, async (archive) => {
    const options = { blob: nowhere, dedupSources: [], limits };
    const builder = createLayerBuilder({ ...options, whiteouts: 'apply' });
    const outcome = await outcomeOf(archive, builder);
    if (outcome === 'ok') builder.finish();
    return outcome;
  });
  expect([...counts.keys()].sort()).toEqual(['import-invalid', 'import-limit', 'ok']);
});
