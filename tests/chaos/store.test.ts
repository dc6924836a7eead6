import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSeededRandom } from '@dsec/std';
import { openSqliteStore, type Store } from '@dsec/store';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

const LONG = process.env.DSEC_TEST_LONG === '1';
const SEED = Number(process.env.SEED ?? 1);
const WRITES = 1000;
/** A killed writer's file is opened by the next one, so that damage would add up. */
const ROUNDS_PER_FILE = 8;

let directory: string;
let path: string;

beforeAll(() => {
  // The child programs run what is built, so build it.
  const root = join(import.meta.dirname, '../..');
  execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-b', 'packages/store'], {
    cwd: root,
  });
});
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'dsec-chaos-store-'));
  path = join(directory, 'store.db');
});
afterEach(() => {
  rmSync(directory, { recursive: true });
});

describe('SQLite store', () => {
  it('keeps every acknowledged write, whole, when its writer is killed', {
    timeout: 1_800_000,
  }, async () => {
    const random = createSeededRandom(SEED);
    let acknowledged: string[] = [];
    let killed = 0;
    for (let round = 0; round < (LONG ? 100 : 8); round += 1) {
      if (round % ROUNDS_PER_FILE === 0) {
        path = join(directory, `${round}.db`);
        acknowledged = [];
      }
      const { lines, signal } = await writeUntilKilled(String(round), random.int(WRITES));
      acknowledged.push(...lines);
      if (signal === 'SIGKILL') killed += 1;
      const store = await openSqliteStore({ path });
      try {
        await verify(store, acknowledged);
      } finally {
        await store.close();
      }
    }
    expect(killed, 'rounds in which the writer died at work').toBeGreaterThan(0);
    expect(acknowledged.length).toBeGreaterThan(0);
  });

  it('loses no update of two processes that compare and set one counter', async () => {
    const times = LONG ? 5000 : 300;
    await Promise.all([0, 1, 2].map(() => run('store-counter.mjs', [path, String(times)])));
    const store = await openSqliteStore({ path });
    const counter = await store.keys.get('counter');
    await store.close();
    expect(new TextDecoder().decode(counter?.value)).toBe(String(3 * times));
  });

  it('lets processes that open one new file at once all in', async () => {
    await Promise.all([0, 1, 2, 3, 4, 5].map(() => run('store-counter.mjs', [path, '1'])));
    const store = await openSqliteStore({ path });
    const counter = await store.keys.get('counter');
    await store.close();
    expect(new TextDecoder().decode(counter?.value)).toBe('6');
  });
});

/** Runs a writer and kills it once it has said so many lines. Returns all that it said, and how it ended. */
async function writeUntilKilled(round: string, linesMax: number) {
  const script = join(import.meta.dirname, 'store-writer.mjs');
  const child = spawn(process.execPath, [script, path, round], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  let count = 0;
  child.stdout.setEncoding('utf8');
  child.stdout.on('data', (chunk: string) => {
    output += chunk;
    count += chunk.split('\n').length - 1;
    if (count > linesMax) child.kill('SIGKILL');
  });
  const signal = await new Promise<NodeJS.Signals | null>((resolve) => {
    child.on('close', (_code, by) => resolve(by));
  });
  const lines = output.split('\n').slice(0, -1);
  expect(lines[0]).toBe('ready');
  return { lines: lines.slice(1), signal };
}

async function verify(store: Store, acknowledged: readonly string[]): Promise<void> {
  const found = [new Set<string>(), new Set<string>(), new Set<string>()];
  for (let after: string | undefined; ; ) {
    const page = await store.keys.list('k/', after === undefined ? {} : { after });
    for (const { key, value } of page.entries) {
      const name = wholeName(value);
      expect(key).toBe(`k/${name}`);
      found[0]?.add(name);
    }
    after = page.next;
    if (after === undefined) break;
  }
  let last = 0;
  for (let page = await store.logs.read('l', { after: 0 }); page.length > 0; ) {
    for (const { sequence, value } of page) {
      expect(sequence).toBeGreaterThan(last);
      last = sequence;
      found[1]?.add(wholeName(value));
    }
    page = await store.logs.read('l', { after: last });
  }
  expect(await store.logs.bounds('l')).toEqual({ last, trimmedThrough: 0 });
  const { depth } = await store.queues.stats('q');
  const leased = new Set<number>();
  for (let done = false; !done; ) {
    const items = await store.queues.lease('q', { max: 1000 });
    for (const item of items) found[2]?.add(wholeName(item.value));
    const before = leased.size;
    for (const item of items) leased.add(item.sequence);
    done = leased.size === before;
  }
  expect(leased.size).toBe(depth);
  for (const line of acknowledged) {
    const [kind, name] = line.split(' ');
    expect(found[Number(kind)]?.has(name ?? ''), `acknowledged write ${line}`).toBe(true);
  }
}

/** The name inside a value of the writer; fails when the value is not whole. */
function wholeName(value: Uint8Array): string {
  const text = new TextDecoder().decode(value);
  const body = text.slice(65);
  expect(text.slice(0, 64)).toBe(createHash('sha256').update(body).digest('hex'));
  return body.split(' ')[0] ?? '';
}

async function run(script: string, args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [join(import.meta.dirname, script), ...args], {
    stdio: 'inherit',
  });
  const code = await new Promise((resolve) => child.on('close', resolve));
  expect(code, `exit code of ${script}`).toBe(0);
}
