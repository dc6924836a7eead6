import { DsecError } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { createLane, orAborted } from '../src/lifecycle/lane.ts';

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

describe('orAborted', () => {
  it('is the work or the signal, whichever is first', async () => {
    const controller = new AbortController();
    expect(await orAborted(Promise.resolve(1), controller.signal)).toBe(1);
    expect(await orAborted(Promise.resolve(2), undefined)).toBe(2);
    await expect(orAborted(Promise.reject(new Error('no')), controller.signal)).rejects.toThrow(
      'no',
    );
    const left = orAborted(new Promise(() => undefined), controller.signal);
    controller.abort(new Error('gone'));
    await expect(left).rejects.toThrow('gone');
    await expect(orAborted(Promise.resolve(3), controller.signal)).rejects.toThrow('gone');
  });
});
