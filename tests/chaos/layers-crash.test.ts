import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import {
  CRASH_POINTS,
  createLayerStore,
  importLayer,
  type LayerStore,
  parseLayerRef,
  REPAIR_CRASH_POINTS,
  sweepLayerStore,
} from '@dsec/layers';
import { createSeededRandom, type Digest } from '@dsec/std';
import { beforeAll, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { auditStore, sweepAll } from '../../packages/layers/test/support/store-audit.ts';
import {
  codeOf,
  temporaryDirectory,
  temporaryDirectoryOfFile,
} from '../../packages/layers/test/support/temporary.ts';

const SEED = Number(process.env.SEED ?? 7);
const isLong = process.env.DSEC_TEST_LONG === '1';
const timeout = isLong ? 3_600_000 : 300_000;
const REF = 'base/crash:1.0.0';
const IMPORTER = join(import.meta.dirname, 'layers-importer.mjs');

const scratch = await temporaryDirectoryOfFile();
const source = join(scratch, 'source');
/** What an undisturbed import gives, and how long one takes in a process of its own. */
let wanted: Digest;
let importMs: number;

compileFirst();

beforeAll(async () => {
  const random = createSeededRandom(SEED);
  mkdirSync(join(source, 'd'), { recursive: true });
  for (let n = 0; n < 8; n += 1) writeFileSync(join(source, 'd', `f${n}`), random.bytes(90_000));
  const store = await createLayerStore(join(scratch, 'reference'));
  const startedMs = performance.now();
  wanted = (await startImport(store).ended).layerId as Digest;
  importMs = performance.now() - startedMs;
}, 120_000);

async function newStore(): Promise<LayerStore> {
  return createLayerStore(join(await temporaryDirectory(), 'store'));
}

const importHere = (store: LayerStore) =>
  importLayer({ store, ...parseLayerRef(REF), source: { kind: 'directory', path: source } });

interface Importer {
  readonly pid: number;
  readonly ended: Promise<{ signal: NodeJS.Signals | null; layerId?: string; code?: string }>;
}

/** Imports in a process of its own, as another command or node would. */
function startImport(store: LayerStore, env: NodeJS.ProcessEnv = {}): Importer {
  const args = [IMPORTER, store.root, REF, JSON.stringify({ kind: 'directory', path: source })];
  const child = spawn(process.execPath, args, {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.on('data', (piece) => {
    output += piece;
  });
  const ended = once(child, 'close').then(([, signal]) => {
    return { signal, ...(output === '' ? {} : JSON.parse(output)) };
  });
  return { pid: child.pid ?? 0, ended };
}

/** The store is whole and without stages now, and the same import still gives the right layer. */
async function expectRecovery(store: LayerStore): Promise<void> {
  await sweepAll(store);
  await auditStore(store);
  expect((await importHere(store)).record.layerId).toBe(wanted);
  expect(await auditStore(store)).toMatchObject({ layers: [wanted], refs: [REF] });
  expect(readdirSync(join(store.root, 'tmp'))).toEqual([]);
}

describe('an import that is killed', () => {
  // A point that is never reached lets the import succeed, and the test fails.
  it.each(CRASH_POINTS)('at %s', async (point) => {
    const store = await newStore();
    process.env.DSEC_CRASH_POINT = point;
    try {
      await expect(importHere(store), 'the worker dies, its parent tells').rejects.toThrow(
        /SIGKILL/,
      );
    } finally {
      delete process.env.DSEC_CRASH_POINT;
    }
    expect(readdirSync(join(store.root, 'tmp')), 'the parent cleans up').toEqual([]);
    await auditStore(store);

    const env = { DSEC_CRASH_POINT: point, DSEC_CRASH_SCOPE: 'parent' };
    const { signal } = await startImport(store, env).ended;
    expect(signal, 'now the parent dies as well').toBe('SIGKILL');
    await expectRecovery(store);
  });

  it.each(REPAIR_CRASH_POINTS)('at %s of a damaged layer', async (point) => {
    const store = await newStore();
    await importHere(store);
    const files = ['blobs', 'layers'].flatMap((kind) => {
      const [id = ''] = readdirSync(join(store.root, kind));
      return readdirSync(join(store.root, kind, id)).map((name) => join(kind, id, name));
    });
    for (const file of files) {
      chmodSync(join(store.root, file), 0o644);
      writeFileSync(join(store.root, file), 'damaged');
    }
    process.env.DSEC_CRASH_POINT = point;
    try {
      expect(await codeOf(importHere(store))).toBe('overloaded');
    } finally {
      delete process.env.DSEC_CRASH_POINT;
    }
    expect(readdirSync(join(store.root, 'tmp'))).toEqual([]);
    const { repaired } = await importHere(store);
    expect(files).toEqual(expect.arrayContaining([...repaired]));
    expect(await auditStore(store)).toMatchObject({ layers: [wanted], refs: [REF] });
    expect((await importHere(store)).repaired).toEqual([]);
  });

  const rounds = isLong ? 200 : 5;
  it(`at any time, ${rounds} rounds`, { timeout }, async () => {
    const random = createSeededRandom(SEED);
    const store = await newStore();
    for (let round = 0; round < rounds; round += 1) {
      const importer = startImport(store);
      await setTimeout(random.int(Math.ceil(importMs)));
      const workers = childrenOf(importer.pid);
      // The parent dies and its worker with it; or the worker alone, as the kernel's OOM killer has it.
      const [worker = importer.pid] = workers;
      killIfAlive(random.int(2) === 0 ? importer.pid : worker);
      await importer.ended;
      while (workers.some((pid) => existsSync(`/proc/${pid}/exe`))) await setTimeout(5);
      await sweepAll(store);
      await auditStore(store);
    }
    await expectRecovery(store);
  });
});

describe('imports at once', () => {
  const rounds = isLong ? 100 : 3;
  it(`of the same image give one layer, ${rounds} rounds`, { timeout }, async () => {
    const random = createSeededRandom(SEED);
    for (let round = 0; round < rounds; round += 1) {
      const store = await newStore();
      const importers = [];
      for (let n = 0; n < 2; n += 1) {
        importers.push(startImport(store).ended);
        await setTimeout(random.int(30));
      }
      const results = await Promise.all(importers);
      expect(results.map(({ layerId }) => layerId)).toEqual([wanted, wanted]);
      const audit = await auditStore(store);
      expect(audit).toMatchObject({ layers: [wanted], refs: [REF] });
      expect(audit.blobs).toHaveLength(1);
      expect(readdirSync(join(store.root, 'tmp'))).toEqual([]);
    }
  });

  it('of which one dies in the middle of publishing do not hinder each other', async () => {
    const store = await newStore();
    const env = { DSEC_CRASH_POINT: 'publish.after-blob-rename', DSEC_CRASH_SCOPE: 'parent' };
    const [dying, living] = [startImport(store, env), startImport(store)];
    expect((await dying.ended).signal).toBe('SIGKILL');
    expect((await living.ended).layerId).toBe(wanted);
    await expectRecovery(store);
  });

  it('do not lose their stage to a sweeper', async () => {
    const store = await newStore();
    let done = false;
    const finished = startImport(store).ended.finally(() => {
      done = true;
    });
    while (!done) {
      await sweepLayerStore(store, { ageMs: 0 });
      await setTimeout(1);
    }
    const result = await finished;
    // A sweep may come between the making of a stage and its lock; the import then says so and can be
    // repeated.
    if (result.code !== undefined) expect(['conflict', 'not-found']).toContain(result.code);
    else expect(result.layerId).toBe(wanted);
    await expectRecovery(store);
  });
});

it('ends the worker when the process that wants the layer is gone', async () => {
  const store = await newStore();
  const importer = startImport(store);
  let workers: number[] = [];
  let done = false;
  const ended = importer.ended.finally(() => {
    done = true;
  });
  while (workers.length === 0) {
    await setTimeout(5);
    workers = childrenOf(importer.pid);
    expect(done, 'the importer starts a worker').toBe(false);
  }
  killIfAlive(importer.pid);
  await ended;
  for (const pid of workers) {
    while (existsSync(`/proc/${pid}/exe`)) await setTimeout(5);
  }
  await expectRecovery(store);
});

it('refuses the import of a worker that cannot start', async () => {
  const store = await newStore();
  process.env.NODE_OPTIONS = '--no-such-option';
  try {
    expect(await codeOf(importHere(store))).toBe('internal');
  } finally {
    delete process.env.NODE_OPTIONS;
  }
  expect(readdirSync(join(store.root, 'tmp'))).toEqual([]);
});

it('says when the worker had too little memory', async () => {
  const store = await newStore();
  process.env.NODE_OPTIONS = '--max-old-space-size=6';
  try {
    await expect(importHere(store)).rejects.toThrow(
      expect.objectContaining({ code: 'overloaded', message: expect.stringMatching(/memory/) }),
    );
  } finally {
    delete process.env.NODE_OPTIONS;
  }
  expect(readdirSync(join(store.root, 'tmp'))).toEqual([]);
});

function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
    return text.split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

/** Only pids that this test started, or children of those that it has just listed. */
function killIfAlive(pid: number): void {
  try {
    if (pid > 1) process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}
