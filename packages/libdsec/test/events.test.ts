import type { Event } from '@dsec/protocol';
import { describe, expect, it } from 'vitest';
import { clientOf, SANDBOX_ID } from './support/fake-server.ts';

const eventAt = (number: number): Event => ({
  ...{ type: 'sandbox-state', cursor: `c${number}`, atMs: number, sandbox: SANDBOX_ID },
  ...{ project: 'p', principal: 'p', state: 'running', revision: number },
});

describe('events', () => {
  it('go on after the last one that was taken when the connection is lost', async () => {
    const asked: object[] = [];
    const client = await clientOf({
      async streamEvents({ query }) {
        asked.push(query);
        const from = Number(query.cursor?.slice(1) ?? 0);
        return (async function* () {
          for (let number = from + 1; number <= from + 3; number += 1) {
            yield { id: `c${number}`, data: eventAt(number) };
          }
          await new Promise((resolve) => setTimeout(resolve, 30));
          throw new Error('the server is gone');
        })();
      },
    });
    const cursors: string[] = [];
    for await (const { cursor } of client.events({ job: 'j', types: ['sandbox-state'] })) {
      cursors.push(cursor);
      if (cursors.length === 7) break;
    }
    expect(cursors).toEqual(['c1', 'c2', 'c3', 'c4', 'c5', 'c6', 'c7']);
    const filter = { job: 'j', type: ['sandbox-state'] };
    expect(asked).toEqual([filter, { ...filter, cursor: 'c3' }, { ...filter, cursor: 'c6' }]);
  });

  it('end with the caller', async () => {
    const client = await clientOf({
      streamEvents: async (_, { signal }) =>
        (async function* () {
          yield undefined;
          await new Promise((resolve) => signal.addEventListener('abort', resolve));
        })(),
    });
    const events = client.events({ signal: AbortSignal.timeout(100) });
    await expect(events.next()).rejects.toMatchObject({ code: 'deadline-exceeded' });
  });
});
