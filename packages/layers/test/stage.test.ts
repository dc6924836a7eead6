import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createManualClock, HOUR_MS } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { createStage, newStageName, sweepStage, sweepStages } from '../src/stage.ts';
import { codeOf, temporaryDirectory } from './support/temporary.ts';

describe('createStage', () => {
  it('makes a directory that its owner removes', async () => {
    const directory = await temporaryDirectory();
    const stage = await createStage(directory, newStageName());
    await mkdir(join(stage.path, 'blob'));
    await writeFile(join(stage.path, 'blob', 'data'), 'x', { mode: 0o444 });
    await stage.discard();
    expect(await readdir(directory)).toEqual([]);
  });

  it('refuses names that leave the directory', async () => {
    const directory = await temporaryDirectory();
    expect(await codeOf(createStage(directory, '../x'))).toBe('invalid-argument');
  });
});

describe('sweepStages', () => {
  it('keeps a stage whose owner lives, however old it is', async () => {
    const directory = await temporaryDirectory();
    const stage = await createStage(directory, 'alive');
    await utimes(stage.path, 0, 0);
    await utimes(join(stage.path, 'owner'), 0, 0);
    expect(await sweepStages(directory)).toEqual([]);
    expect(await sweepStage(stage.path)).toBe(false);
    expect(await readdir(stage.path)).toEqual(['owner']);
    await stage.discard();
  });

  it('removes what dead owners left, with and without an owner file, once it is old enough', async () => {
    const directory = await temporaryDirectory();
    await mkdir(join(directory, 'dead', 'layer'), { recursive: true });
    await writeFile(join(directory, 'dead', 'owner'), '');
    await mkdir(join(directory, 'unborn'));
    const clock = createManualClock(Date.now());
    expect(await sweepStages(directory, { clock })).toEqual([]);
    clock.advance(HOUR_MS + 60_000);
    expect((await sweepStages(directory, { clock })).sort()).toEqual(['dead', 'unborn']);
    expect(await readdir(directory)).toEqual([]);
  });

  it('takes a file that is still being written as a sign of life', async () => {
    const directory = await temporaryDirectory();
    await mkdir(join(directory, 'remote', 'blob'), { recursive: true });
    await writeFile(join(directory, 'remote', 'blob', 'data'), 'x');
    await utimes(join(directory, 'remote'), 0, 0);
    await utimes(join(directory, 'remote', 'blob'), 0, 0);
    expect(await sweepStages(directory)).toEqual([]);
  });

  it('passes over a stage that it cannot remove', async () => {
    const directory = await temporaryDirectory();
    for (const name of ['a-planted', 'dead']) {
      await mkdir(join(directory, name, name === 'dead' ? 'layer' : 'owner'), { recursive: true });
    }
    const clock = createManualClock(Date.now());
    clock.advance(HOUR_MS + 60_000);
    expect(await sweepStages(directory, { clock })).toEqual(['dead']);
    expect(await readdir(directory)).toEqual(['a-planted']);
  });

  it('goes by the lock where a stage is dated far ahead, as after a clock was set back', async () => {
    const directory = await temporaryDirectory();
    await mkdir(join(directory, 'dead'));
    await writeFile(join(directory, 'dead', 'owner'), '');
    const alive = await createStage(directory, 'alive');
    const clock = createManualClock(Date.now() - 30 * HOUR_MS);
    expect(await sweepStages(directory, { clock })).toEqual(['dead']);
    expect(await readdir(directory)).toEqual(['alive']);
    await alive.discard();
  });

  it('lets any number of sweepers run at once', async () => {
    const directory = await temporaryDirectory();
    for (let n = 0; n < 20; n += 1) {
      await mkdir(join(directory, `s${n}`, 'layer'), { recursive: true });
      await writeFile(join(directory, `s${n}`, 'owner'), '');
    }
    await Promise.all([1, 2, 3, 4].map(() => sweepStages(directory, { ageMs: 0 })));
    expect(await readdir(directory)).toEqual([]);
  });

  it('leaves files that are no stage alone', async () => {
    const directory = await temporaryDirectory();
    await writeFile(join(directory, 'note'), '');
    expect(await sweepStages(directory, { ageMs: 0 })).toEqual([]);
    expect(await readdir(directory)).toEqual(['note']);
  });
});
