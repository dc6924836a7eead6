import { createSeededRandom } from '@dsec/std';
import { expect, it } from 'vitest';
import { readBounded, readEvents, readLines } from '../src/http-body.ts';

async function* chunksOf(text: string, seed: number): AsyncGenerator<Uint8Array> {
  const random = createSeededRandom(seed);
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + random.int(7);
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

it('reads lines and events however they are cut', async () => {
  for (let seed = 0; seed < 50; seed += 1) {
    expect(await all(readLines(chunksOf('a\n\n\u00e9\u00e8 b\n', seed)))).toEqual([
      'a',
      '',
      '\u00e9\u00e8 b',
    ]);
    const events = ': hi\n\nid: 1\ndata: x\ndata: y\n\nretry: 5\nid:2\ndata:z\n\n';
    expect(await all(readEvents(chunksOf(events, seed)))).toEqual([
      { id: '1', data: 'x\ny' },
      { id: '2', data: 'z' },
    ]);
  }
});

it('refuses a line without an end, and one without a bound', async () => {
  await expect(all(readLines(chunksOf('a\nb', 1)))).rejects.toMatchObject({ code: 'protocol' });
  let sent = 0;
  const endless = (async function* () {
    for (; ; sent += 1) yield Buffer.alloc(64 * 1024, 'a');
  })();
  await expect(all(readLines(endless))).rejects.toMatchObject({ code: 'protocol' });
  expect(sent).toBeLessThan(20);
});

it('refuses an event of lines without a bound', async () => {
  let sent = 0;
  const endless = (async function* () {
    for (; ; sent += 1) yield Buffer.from(`data:${'a'.repeat(32 * 1024)}\n`);
  })();
  await expect(all(readEvents(endless))).rejects.toMatchObject({ code: 'protocol' });
  expect(sent).toBeLessThan(40);
});

it('stops reading a body at its bound', async () => {
  const text = 'x'.repeat(100);
  expect((await readBounded(chunksOf(text, 1), 100)).toString()).toBe(text);
  await expect(readBounded(chunksOf(text, 1), 99)).rejects.toMatchObject({ code: 'too-large' });
});
