import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JOURNAL_TABLES, openEventLog, openJournal } from '@dsec/edge';
import type { Event } from '@dsec/protocol';
import { createSeededRandom, systemClock } from '@dsec/std';
import { describe, expect, it, onTestFinished } from 'vitest';

function temporaryRoot(): string {
  const root = mkdtempSync(join(tmpdir(), 'dsec-events-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  return root;
}

function open(root = temporaryRoot(), keptMax?: number, seed = 1) {
  const random = createSeededRandom(seed);
  const journal = openJournal(root, { clock: systemClock, random, tables: JOURNAL_TABLES });
  onTestFinished(() => {
    if (journal.db.open) journal.close();
  });
  const log = openEventLog(journal, systemClock, keptMax);
  const append = (revision: number, project = 'p') =>
    log.append({
      ...{ type: 'sandbox-state', project, principal: 'me', sandbox: 'sb-s-e-aaaaaaaaaaaaaaaa' },
      ...{ state: 'running', revision },
    });
  return { root, journal, log, append };
}

const never = new AbortController().signal;

/** The next `count` things told. */
async function take(
  events: AsyncIterable<Event | undefined>,
  count: number,
): Promise<(Event | undefined)[]> {
  const taken: (Event | undefined)[] = [];
  for await (const event of events) {
    taken.push(event);
    if (taken.length === count) break;
  }
  return taken;
}

const revisions = (events: readonly (Event | undefined)[]) =>
  events.map((event) => (event?.type === 'sandbox-state' ? event.revision : event?.type));

describe('follow', () => {
  it('lets others have their turn while nothing is of interest', async () => {
    const { journal, log, append } = open();
    const cursor = log.cursor();
    journal.transaction(() => {
      for (let i = 0; i < 5000; i += 1) append(i);
    });
    let seen = 0;
    const filter = () => {
      seen += 1;
      return seen === 5000;
    };
    const following = take(log.follow({ cursor, signal: never, quietMs: 5000, filter }), 1);
    await new Promise((resolve) => setImmediate(resolve));
    expect(seen).toBeLessThan(2500);
    expect(revisions(await following)).toEqual([4999]);
  });

  it('tells what comes after a cursor, and what comes later', async () => {
    const { log, append } = open();
    const cursor = log.cursor();
    append(1);
    append(2);
    const follower = take(log.follow({ cursor, signal: never, quietMs: 5000 }), 4);
    setTimeout(() => [append(3), append(4)], 5);
    const told = await follower;
    expect(revisions(told)).toEqual([1, 2, 3, 4]);
    const middle = told[1]?.cursor as string;
    const rest = await take(log.follow({ cursor: middle, signal: never, quietMs: 5000 }), 2);
    expect(revisions(rest)).toEqual([3, 4]);
  });

  it('begins now without a cursor, and gives signs of life', async () => {
    const { log, append } = open();
    append(1);
    const told = await take(log.follow({ signal: never, quietMs: 1 }), 2);
    expect(told).toEqual([undefined, undefined]);
  });

  it('tells only what is asked for', async () => {
    const { log, append } = open();
    const cursor = log.cursor();
    for (let n = 0; n < 600; n += 1) append(n, n % 300 === 0 ? 'mine' : 'theirs');
    const filter = ({ project }: { project: string }) => project === 'mine';
    const told = await take(log.follow({ cursor, signal: never, quietMs: 5000, filter }), 2);
    expect(revisions(told)).toEqual([0, 300]);
  });

  it('goes on after a restart', async () => {
    const first = open();
    const cursor = first.log.cursor();
    first.append(1);
    first.journal.close();
    const { log, append } = open(first.root);
    append(2);
    const told = await take(log.follow({ cursor, signal: never, quietMs: 5000 }), 2);
    expect(revisions(told)).toEqual([1, 2]);
  });

  it('says that it has lost what is not kept, then goes on', async () => {
    const { log, append, journal } = open(temporaryRoot(), 10);
    const cursor = log.cursor();
    for (let n = 1; n <= 1100; n += 1) append(n);
    expect(journal.db.prepare('SELECT count(*) FROM events').pluck().get()).toBeLessThan(1011);
    const told = revisions(await take(log.follow({ cursor, signal: never, quietMs: 5000 }), 3));
    expect(told[0]).toBe('lost');
    expect(told[2]).toBe((told[1] as number) + 1);
  });

  it('loses what happens to a reader that is too slow, and says so', async () => {
    const { log, append } = open(temporaryRoot(), 10);
    append(0);
    const events = log.follow({ cursor: log.cursor(), signal: never, quietMs: 5000 });
    const reader = events[Symbol.asyncIterator]();
    append(1);
    expect((await reader.next()).value).toMatchObject({ revision: 1 });
    for (let n = 2; n <= 1200; n += 1) append(n);
    expect((await reader.next()).value).toMatchObject({ type: 'lost' });
    expect((await reader.next()).value.revision).toBeGreaterThan(2);
  });

  it('takes the cursor of another journal as lost, and refuses what is none', async () => {
    const { log } = open();
    const foreign = open(temporaryRoot(), undefined, 2).log.cursor();
    const told = await take(log.follow({ cursor: foreign, signal: never, quietMs: 5000 }), 1);
    expect(revisions(told)).toEqual(['lost']);
    expect(() => log.follow({ cursor: 'x', signal: never, quietMs: 1 })).toThrow(
      expect.objectContaining({ code: 'invalid-argument' }),
    );
  });

  it('ends with its caller, and with the log', async () => {
    const { log } = open();
    const controller = new AbortController();
    const left = take(log.follow({ signal: controller.signal, quietMs: 60_000 }), 1);
    const closed = take(log.follow({ signal: never, quietMs: 60_000 }), 1);
    setTimeout(() => controller.abort(new Error('gone')), 5);
    await expect(left).rejects.toThrow('gone');
    log.close();
    await expect(closed).rejects.toMatchObject({ code: 'unavailable' });
  });
});

it('tells nothing of what was rolled back', async () => {
  const { log, append, journal } = open();
  const cursor = log.cursor();
  const failing = () =>
    journal.transaction(() => {
      append(1);
      throw new Error('no');
    });
  expect(failing).toThrow('no');
  append(2);
  const told = await take(log.follow({ cursor, signal: never, quietMs: 5000 }), 1);
  expect(revisions(told)).toEqual([2]);
});
