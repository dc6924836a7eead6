import assert from 'node:assert/strict';
import type { FileAttributesFields } from '@dsec/protocol';
import { MIB } from '@dsec/std';
import type { AgentLink } from '../agent/index.ts';
import { type ConformanceTest, refused } from './bench.ts';
import { run } from './command-run.ts';

export const fileCases: Readonly<Record<string, ConformanceTest>> = {
  'files of any name and any bytes': async (bench) => {
    const { link } = await bench.start();
    const name = Buffer.concat([Buffer.from('/tmp/'), Buffer.from([0xff, 0x0a, 0x80, 0x27, 0x20])]);
    const bytes = bench.random.bytes(300_000);
    assert.equal(await writeFile(link, name, bytes), bytes.length);
    assert.deepEqual(await readFile(link, name), Buffer.from(bytes));
    assert.deepEqual(await readFile(link, name, 299_999), Buffer.from(bytes.subarray(299_999)));
    const names = (await listAll(link, Buffer.from('/tmp'), 100)).map((entry) => entry.name);
    assert.ok(names.some((other) => Buffer.compare(other, name.subarray(5)) === 0));
    await link.request('file-remove', { path: name, recursive: false });
    await refused('not-found', readFile(link, name));
  },

  'a directory page by page, each name once': async (bench) => {
    const wide = { inodesMax: 40_000, diskBytes: 64 * MIB, memoryBytes: 256 * MIB };
    const { link } = await bench.start({}, bench.isLong ? wide : {});
    const count = bench.isLong ? 20_000 : 2500;
    const path = Buffer.from('/tmp/wide');
    await link.request('file-mkdir', { path, createParents: false });
    await run(link, bench.commands.manyNames('/tmp/wide', count));
    const wanted = Array.from({ length: count }, (_, i) => `name-${i}`).sort();
    for (const entriesMax of [1024, 333]) {
      const entries = await listAll(link, path, entriesMax);
      assert.deepEqual(entries.map(({ name }) => Buffer.from(name).toString()).sort(), wanted);
    }
  },

  'directories are made, moved and removed': async (bench) => {
    const { link } = await bench.start();
    const at = (path: string) => Buffer.from(`/tmp/${path}`);
    await link.request('file-mkdir', { path: at('a/b/c'), createParents: true, mode: 0o750 });
    await refused(
      'already-exists',
      link.request('file-mkdir', { path: at('a'), createParents: false }),
    );
    await link.request('file-move', { source: at('a/b'), target: at('moved'), replace: false });
    const stat = await link.request('file-stat', { path: at('moved/c'), followSymlinks: true });
    assert.ok(stat.type === 'file-attributes');
    assert.deepEqual([stat.fields.kind, stat.fields.mode], ['directory', 0o750]);
    await refused(
      'state-conflict',
      link.request('file-remove', { path: at('moved'), recursive: false }),
    );
    await link.request('file-remove', { path: at('moved'), recursive: true });
    await refused(
      'not-found',
      link.request('file-stat', { path: at('moved'), followSymlinks: true }),
    );
  },

  'a full disk is told, and has room again': async (bench) => {
    const { key, link } = await bench.start({}, { diskBytes: 16 * MIB });
    const path = Buffer.from('/tmp/large');
    await refused('storage-full', writeFile(link, path, new Uint8Array(32 * MIB)));
    await refused('not-found', readFile(link, path));
    const { diskBytes } = await bench.backend.stats(key);
    assert.ok(diskBytes <= 16 * MIB, `${diskBytes} bytes`);
    assert.equal(await writeFile(link, path, new Uint8Array(MIB)), MIB);
  },

  'a session keeps its directory and its variables': async (bench) => {
    const { plan, link } = await bench.start();
    const sessionId = 'session-one';
    await link.request('session-open', { sessionId, env: [] });
    await refused('already-exists', link.request('session-open', { sessionId, env: [] }));
    await run(link, [], { sessionId, shell: 'cd /tmp; export WORD=kept' });
    const next = await bench.connect(plan);
    const result = await run(next, [], { sessionId, shell: 'pwd; echo $WORD' });
    assert.deepEqual(
      [result.stdout.text, result.exitCode, result.trusted],
      ['/tmp\nkept\n', 0, false],
    );
    assert.equal((await run(next, [], { sessionId, shell: 'exit 5' })).exitCode, 5);
    await refused('not-found', run(next, [], { sessionId, shell: 'pwd' }));
  },

  'the end of a shell that nobody uses is told': async (bench) => {
    const { plan, link } = await bench.start();
    const sessionId = 'session-one';
    await refused('not-found', link.request('session-watch', { sessionId }));
    await link.request('session-open', { sessionId, env: [] });
    const cut = refused('unavailable', link.request('session-watch', { sessionId }));
    // A watch belongs to its link; the next one asks again.
    const next = await bench.connect(plan);
    await cut;
    const early = refused('conflict', next.request('session-watch', { sessionId }));
    const late = next.request('session-watch', { sessionId });
    await early;
    await run(next, [], { sessionId, shell: bench.commands.endShellIn(200) });
    assert.equal((await late).type, 'done');
    await refused('not-found', next.request('session-watch', { sessionId }));
    await next.request('session-open', { sessionId, env: [] });
    const closed = next.request('session-watch', { sessionId });
    await next.request('session-close', { sessionId });
    assert.equal((await closed).type, 'done');
  },
};

async function writeFile(link: AgentLink, path: Uint8Array, bytes: Uint8Array): Promise<number> {
  const stream = link.open();
  try {
    await stream.send('file-write', { path, createParents: false, exclusive: false });
    // A write that is refused says so in its answer.
    const feeding = stream.write(bytes).then(() => stream.endInput());
    feeding.catch(() => {});
    for (;;) {
      const frame = await stream.receive();
      if (frame.type === 'done') return frame.fields.bytes ?? 0;
    }
  } finally {
    stream.leave();
  }
}

async function readFile(link: AgentLink, path: Uint8Array, offset = 0): Promise<Buffer> {
  const stream = link.open();
  const parts: Uint8Array[] = [];
  try {
    await stream.send('file-read', { path, offset });
    for (;;) {
      const frame = await stream.receive();
      if (frame.type === 'stdout') parts.push(frame.data);
      if (frame.type === 'done') return Buffer.concat(parts);
    }
  } finally {
    stream.leave();
  }
}

async function listAll(
  link: AgentLink,
  path: Uint8Array,
  entriesMax: number,
): Promise<readonly FileAttributesFields[]> {
  const all: FileAttributesFields[] = [];
  let cursor: Uint8Array | undefined;
  do {
    const page = await link.request('file-list', { path, entriesMax, ...(cursor && { cursor }) });
    assert.ok(page.type === 'file-entries' && page.fields.entries.length <= entriesMax);
    all.push(...page.fields.entries);
    cursor = page.fields.cursor;
  } while (cursor !== undefined);
  return all;
}
