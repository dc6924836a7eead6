import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Event, ROUTES } from '@dsec/protocol';
import { DsecError, systemClock, systemRandom } from '@dsec/std';
import { createHttpServer } from '@dsec/transport';
import { expect, it, onTestFinished } from 'vitest';
import { type EventStreamRequest, streamEvents } from '../../src/http/event-stream.ts';
import { JOURNAL_TABLES, openJournal } from '../../src/index.ts';
import {
  type EventLog,
  type FollowOptions,
  type NewEvent,
  openEventLog,
} from '../../src/journal/event-log.ts';
import { BOOT_ID } from '../core-world.ts';

const event = (cursor: string, more: object) =>
  ({ type: 'sandbox-state', project: 'ours', sandbox: 'a', cursor, atMs: 1, ...more }) as Event;
const EVENTS = [
  event('c1', {}),
  event('c2', { project: 'theirs' }),
  event('c3', { sandbox: 'b', job: 'job' }),
  event('c4', { type: 'exec-exit' }),
];

/** A log that ends with the signal, as the true one does. */
function logOf(asked: FollowOptions[] = []): Pick<EventLog, 'follow'> {
  return {
    async *follow(options) {
      asked.push(options);
      for (const one of EVENTS) if (options.filter?.(one as never) !== false) yield one;
      yield undefined;
      if (options.signal.aborted) throw options.signal.reason;
      throw new DsecError('data-loss', 'the log is broken');
    },
  };
}

async function cursors(request: Partial<EventStreamRequest>, log = logOf()) {
  const stop = new AbortController();
  stop.abort(new DsecError('unavailable', 'closing'));
  const found: (string | undefined)[] = [];
  const whole = {
    ...{ query: {}, lastEventId: undefined, caller: { project: 'ours' } as never },
    ...{ isPlatform: false, signal: stop.signal, ...request },
  };
  for await (const answer of streamEvents(log, whole)) found.push(answer?.id);
  // The place is taken before anything is told.
  expect(found.shift()).toBeUndefined();
  return found;
}

it('tells a caller of its own project, and the platform of all', async () => {
  expect(await cursors({})).toEqual(['c1', 'c3', 'c4', undefined]);
  expect(await cursors({ isPlatform: true })).toEqual(['c1', 'c2', 'c3', 'c4', undefined]);
});

it('leaves out what was not asked for', async () => {
  expect(await cursors({ query: { sandbox: 'b' } })).toEqual(['c3', undefined]);
  expect(await cursors({ query: { job: 'job' } })).toEqual(['c3', undefined]);
  expect(await cursors({ query: { type: ['exec-exit'] } })).toEqual(['c4', undefined]);
});

it('goes on from the cursor of the query, else of the header', async () => {
  const asked: FollowOptions[] = [];
  await cursors({ lastEventId: 'c7' }, logOf(asked));
  await cursors({ lastEventId: 'c7', query: { cursor: 'c5' } }, logOf(asked));
  await cursors({}, logOf(asked));
  expect(asked.map(({ cursor }) => cursor)).toEqual(['c7', 'c5', undefined]);
});

it('ends quietly with its caller, and fails with its log', async () => {
  await expect(cursors({ signal: new AbortController().signal })).rejects.toMatchObject({
    code: 'data-loss',
  });
});

it('holds little for a caller that takes nothing, cuts it off, and goes on from its cursor', async () => {
  const root = mkdtempSync(join(tmpdir(), 'dsec-events-'));
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const parts = { clock: systemClock, random: systemRandom };
  const journal = openJournal(root, { ...parts, tables: JOURNAL_TABLES, bootId: BOOT_ID });
  const log = openEventLog(journal, systemClock);
  const start = log.cursor();
  journal.transaction(() => {
    for (let revision = 0; revision < MANY; revision += 1) log.append(newEvent(revision));
  });
  let pulled = 0;
  let left = () => {};
  const isLeft = new Promise<void>((resolve) => {
    left = resolve;
  });
  const counting: Pick<EventLog, 'follow'> = {
    async *follow(options) {
      try {
        for await (const one of log.follow(options)) {
          pulled += 1;
          yield one;
        }
      } finally {
        left();
      }
    },
  };
  const socketPath = join(root, 'sock');
  const server = await createHttpServer({
    ...{ listen: { socketPath }, routes: { streamEvents: ROUTES.streamEvents } },
    ...{ authorize: async () => undefined, limits: { stallTimeoutMs: 300 } },
    handlers: {
      streamEvents: async ({ query }, { signal, headers }) =>
        streamEvents(counting, {
          ...{ query, signal, lastEventId: headers['last-event-id'] },
          ...{ caller: { project: 'ours' } as never, isPlatform: false },
        }),
    },
  });
  onTestFinished(async () => {
    await server.close(0);
    journal.close();
  });

  const stuck = open(socketPath, start);
  // Nothing is taken, so that the server ends it by itself.
  await isLeft;
  expect(pulled).toBeLessThan(MANY / 2);
  let taken = '';
  for await (const part of stuck) taken += part;
  const seen = revisionsIn(taken);
  expect(seen.revisions.length).toBeGreaterThan(0);
  expect(seen.revisions).toEqual(seen.revisions.map((_, i) => i));

  const next = open(socketPath, seen.cursor ?? start);
  let text = '';
  for await (const part of next) {
    text += part;
    if (text.includes(`"revision":${MANY - 1}}`)) break;
  }
  const rest = revisionsIn(text).revisions;
  expect(rest).toEqual(rest.map((_, i) => seen.revisions.length + i));
  expect(rest.at(-1)).toBe(MANY - 1);
});

const MANY = 20_000;

const newEvent = (revision: number) =>
  ({
    ...{ type: 'sandbox-state', project: 'ours', principal: 'me', state: 'running' },
    ...{ sandbox: 'sb-s1-e1-aaaaaaaaaaaaaaaa', revision },
  }) as NewEvent;

/** The stream as it comes, head and all. */
function open(socketPath: string, cursor: string): Socket {
  const socket = connect(socketPath);
  socket.write(`GET /v1/events HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: ${cursor}\r\n\r\n`);
  return socket;
}

/** Of the whole events in a stream. */
function revisionsIn(text: string) {
  const events = [...text.matchAll(/id: (\S+)\ndata: .*"revision":(\d+)\}\n\n/g)];
  return {
    revisions: events.map(([, , revision]) => Number(revision)),
    cursor: events.at(-1)?.[1],
  };
}
