import type { Event } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import { expect, it } from 'vitest';
import { type EventStreamRequest, streamEvents } from '../../src/http/event-stream.ts';
import type { EventLog, FollowOptions } from '../../src/journal/event-log.ts';

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
