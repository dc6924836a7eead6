import { type Digest, DsecError } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { createLayerMounts } from '../src/layer-mounts.ts';
import { layerId } from './support/plans.ts';

const [a, b, c] = ['a', 'b', 'c'].map(layerId) as [Digest, Digest, Digest];

/** Counts instead of mounting; each mount waits until it is let go. */
function fake(unusedMax = 8) {
  const log: string[] = [];
  let gate: Promise<void> = Promise.resolve();
  let failing: DsecError | undefined;
  let busy = false;
  const layers = createLayerMounts({
    unusedMax,
    effects: {
      async mount(id) {
        log.push(`mount ${id.at(-1)}`);
        await gate;
        if (failing !== undefined) throw failing;
      },
      async unmount(id) {
        log.push(`unmount ${id.at(-1)}`);
        if (busy) throw new DsecError('conflict', 'in use');
      },
    },
  });
  return {
    layers,
    log,
    hold() {
      let open = () => {};
      gate = new Promise((resolve) => {
        open = resolve;
      });
      return open;
    },
    fail: (error: DsecError | undefined) => {
      failing = error;
    },
    setBusy: (value: boolean) => {
      busy = value;
    },
  };
}

describe('createLayerMounts', () => {
  it('mounts a layer once for all who want it at the same time', async () => {
    const { layers, log, hold } = fake();
    const open = hold();
    const all = [layers.acquire([a, b]), layers.acquire([b]), layers.acquire([a])];
    open();
    await Promise.all(all);
    expect(log).toEqual(['mount a', 'mount b']);
    expect([...layers.users().values()]).toEqual([2, 2]);
  });

  it('keeps what nobody uses, up to its bound, the newest', async () => {
    const { layers, log } = fake(1);
    for (const id of [a, b, c]) {
      await layers.acquire([id]);
      layers.release([id]);
    }
    await layers.settled();
    expect(log).toEqual(['mount a', 'mount b', 'unmount a', 'mount c', 'unmount b']);
    await layers.acquire([c]);
    expect(log.filter((line) => line === 'mount c')).toHaveLength(1);
  });

  it('never unmounts what is used', async () => {
    const { layers, log } = fake(0);
    await Promise.all([layers.acquire([a]), layers.acquire([a])]);
    layers.release([a]);
    await layers.settled();
    expect(log).toEqual(['mount a']);
    layers.release([a]);
    await layers.settled();
    expect(log).toEqual(['mount a', 'unmount a']);
  });

  it('mounts anew what is being unmounted, after that', async () => {
    const { layers, log } = fake(0);
    await layers.acquire([a]);
    layers.release([a]);
    await layers.acquire([a]);
    expect(log).toEqual(['mount a', 'unmount a', 'mount a']);
    expect(layers.users().get(a)).toBe(1);
  });

  it('keeps a mount that cannot go yet', async () => {
    const { layers, log, setBusy } = fake(0);
    setBusy(true);
    await layers.acquire([a]);
    layers.release([a]);
    await layers.settled();
    await layers.acquire([a]);
    setBusy(false);
    layers.release([a]);
    await layers.settled();
    expect(log.filter((line) => line === 'unmount a')).toHaveLength(2);
    expect(layers.users().size).toBe(0);
  });

  it('tells everybody of a failure, keeps no user, and tries anew', async () => {
    const { layers, log, fail } = fake();
    fail(new DsecError('data-loss', 'broken'));
    const all = await Promise.allSettled([layers.acquire([a, b]), layers.acquire([a])]);
    expect(all.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect([...layers.users().values()].every((users) => users === 0)).toBe(true);
    fail(undefined);
    await layers.acquire([a]);
    expect(log.filter((line) => line === 'mount a')).toHaveLength(2);
  });

  it('lets one give up while others wait on', async () => {
    const { layers, hold } = fake();
    const open = hold();
    const giveUp = new AbortController();
    const first = layers.acquire([a], giveUp.signal);
    const second = layers.acquire([a]);
    giveUp.abort();
    await expect(first).rejects.toMatchObject({ code: 'cancelled' });
    open();
    await second;
    expect(layers.users().get(a)).toBe(1);
  });

  it('counts those that run, and what a launcher has mounted', async () => {
    const { layers, log } = fake(1);
    layers.claim([a]);
    layers.found([a, b]);
    await layers.acquire([b]);
    layers.release([b]);
    layers.release([a]);
    await layers.settled();
    expect(log).toEqual(['unmount b']);
  });

  it('forgets what a launcher does not know', async () => {
    const { layers, log } = fake();
    await layers.acquire([a]);
    layers.release([a]);
    layers.found([]);
    await layers.acquire([a]);
    expect(log).toEqual(['mount a', 'mount a']);
  });
});
