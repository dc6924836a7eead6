import { DsecError } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { createLane } from '../src/lifecycle/lane.ts';

const gate = () => {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { open: () => open(), opened };
};

describe('createLane', () => {
  it('does one thing after another, whatever became of the one before', async () => {
    const lane = createLane();
    const done: string[] = [];
    const { open, opened } = gate();
    const first = lane.run(async () => {
      await opened;
      done.push('first');
      throw new Error('no');
    });
    const second = lane.run(async () => done.push('second'));
    open();
    await expect(first).rejects.toThrow('no');
    await second;
    await lane.idle();
    expect(done).toEqual(['first', 'second']);
  });

  it('interrupts what runs and what waits, and nothing that comes later', async () => {
    const lane = createLane();
    const reason = new DsecError('cancelled', 'enough');
    const running = lane.run(
      (signal) =>
        new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason), { once: true });
        }),
    );
    const waiting = lane.run(async () => 'never');
    await Promise.resolve();
    lane.interrupt(reason);
    const later = lane.run(async () => 'later');
    await expect(running).rejects.toBe(reason);
    await expect(waiting).rejects.toBe(reason);
    expect(await later).toBe('later');
  });

  it('takes only so much', async () => {
    const lane = createLane();
    const { open, opened } = gate();
    const works = Array.from({ length: 64 }, () => lane.run(() => opened));
    expect(() => lane.run(() => opened)).toThrow(expect.objectContaining({ code: 'overloaded' }));
    open();
    await Promise.all(works);
    await lane.idle();
    await lane.run(() => opened);
  });
});
