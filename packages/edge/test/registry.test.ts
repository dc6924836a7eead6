import type { SandboxId } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { CREATE, context, createCoreWorld } from './core-world.ts';

const opened = async () => {
  const { open } = createCoreWorld();
  const { core } = await open();
  const make = () => core.lifecycle.create(CREATE, context());
  return { core, make, state: core.state };
};

describe('what changed', () => {
  it('is everything to one who knows nothing, and then what came later', async () => {
    const { core, make, state } = await opened();
    const first = await make();
    const whole = state({});
    expect(whole).toMatchObject({ full: true, edge: 'e1', epoch: 1, backends: ['container'] });
    expect(whole.sandboxes).toMatchObject([{ id: first.id, state: 'running', project: 'p' }]);
    const { epoch, revision } = whole;
    expect(state({ epoch, sinceRevision: revision }).sandboxes).toEqual([]);
    const second = await make();
    await core.lifecycle.stop(first, context());
    const later = state({ epoch, sinceRevision: revision });
    expect(later.full).toBe(false);
    expect(later.revision).toBeGreaterThan(revision);
    expect(later.sandboxes.map(({ id, state: now }) => [id, now])).toEqual([
      [second.id, 'running'],
      [first.id, 'stopped'],
    ]);
    expect(later.sandboxes[1]).toMatchObject({ endReason: 'stopped' });
    expect(state({ epoch: epoch + 1, sinceRevision: revision }).full).toBe(true);
  });

  it('comes in pages that miss nothing', async () => {
    const { core, make, state } = await opened();
    const made = [];
    for (let n = 0; n < 5; n += 1) made.push(await make());
    const seen: string[] = [];
    let page = state({ limit: 2 });
    seen.push(...page.sandboxes.map(({ id }) => id));
    await core.lifecycle.pause(made[0] as (typeof made)[number], context());
    while (page.cursor !== undefined) {
      page = state({ limit: 2, cursor: page.cursor });
      expect(page.full).toBe(true);
      seen.push(...page.sandboxes.map(({ id }) => id));
    }
    expect(new Set(seen)).toEqual(new Set(made.map(({ id }) => id)));
    expect(seen.at(-1)).toBe(made[0]?.id);
    expect(() => state({ cursor: 'f-99-1' })).toThrow(
      expect.objectContaining({ code: 'invalid-argument' }),
    );
  });

  it('can be followed from where the state was read', async () => {
    const { core, make, state } = await opened();
    const { events: cursor } = state({});
    const entry = await make();
    const { signal } = new AbortController();
    const told: unknown[] = [];
    for await (const event of core.events.follow({ cursor, signal, quietMs: 5000 })) {
      told.push(event);
      if (told.length === 2) break;
    }
    expect(told).toMatchObject([
      { type: 'sandbox-state', state: 'creating', sandbox: entry.id, revision: 1 },
      { type: 'sandbox-state', state: 'running', sandbox: entry.id, revision: 2 },
    ]);
  });
});

describe('a sandbox', () => {
  it('tells who waits for its next change, and lets go of who does not', async () => {
    const { core, make } = await opened();
    const entry = await make();
    const { sandboxes, lifecycle } = core;
    expect(await sandboxes.waitForChange(entry, 1, 10_000)).toBe(true);
    expect(await sandboxes.waitForChange(entry, entry.revision, 1)).toBe(false);
    const controller = new AbortController();
    const left = sandboxes.waitForChange(entry, entry.revision, 10_000, controller.signal);
    controller.abort(new Error('gone'));
    await expect(left).rejects.toThrow('gone');
    const waiting = sandboxes.waitForChange(entry, entry.revision, 10_000);
    await lifecycle.stop(entry, context());
    expect(await waiting).toBe(true);
  });

  it('numbers its operations, and remembers its first command', async () => {
    const { core, make } = await opened();
    const entry = await make();
    const numbers = Array.from({ length: 2000 }, () => core.sandboxes.nextSequence(entry));
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
    core.sandboxes.noteFirstCommand(entry);
    const { firstCommandMs } = entry.timings;
    expect(firstCommandMs).toBeGreaterThanOrEqual(entry.timings.readyMs ?? 0);
    const { revision } = entry;
    core.sandboxes.noteFirstCommand(entry);
    expect(entry).toMatchObject({ revision, timings: { firstCommandMs } });
  });

  it('is not found under another name', async () => {
    const { core } = await opened();
    const id = 'sb-s1-e1-aaaaaaaaaaaaaaaa' as SandboxId;
    expect(core.sandboxes.find(id)).toBeUndefined();
    expect(() => core.sandboxes.get(id)).toThrow(expect.objectContaining({ code: 'not-found' }));
  });
});

describe('a full journal', () => {
  it('takes nothing more, and loses nothing that it has', async () => {
    const { core, make } = await opened();
    const entry = await make();
    const { db } = core.journal;
    db.pragma(`max_page_count = ${db.pragma('page_count', { simple: true })}`);
    let code: unknown;
    for (let n = 0; n < 50 && code === undefined; n += 1) {
      code = await make().then(
        () => undefined,
        (thrown) => thrown.code,
      );
    }
    expect(code).toBe('storage-full');
    db.pragma('max_page_count = 1000000');
    await core.lifecycle.stop(entry, context());
    expect(entry.state).toBe('stopped');
    expect((await make()).state).toBe('running');
  });
});
