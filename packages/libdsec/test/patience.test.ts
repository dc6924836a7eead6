import { describe, expect, it } from 'vitest';
import { NotFoundError, OverloadedError, Timeout, UnavailableError } from '../src/index.ts';
import { createPatience, startWait } from '../src/patience.ts';

const gone = new UnavailableError('unavailable', 'gone');

describe('patience', () => {
  it('is at its end after so long without progress', async () => {
    const patience = createPatience(150);
    const pauses = async () => {
      for (;;) await patience.pause(gone);
    };
    await expect(pauses()).rejects.toBe(gone);
    patience.progressed();
    await patience.pause(gone);
  });

  it('is not had with what a repetition cannot mend', async () => {
    const patience = createPatience(10_000);
    await patience.pause(new OverloadedError('overloaded', 'full'));
    const missing = new NotFoundError('not-found', 'none');
    await expect(patience.pause(missing)).rejects.toBe(missing);
  });

  it('ends with the caller', async () => {
    const patience = createPatience(10_000);
    const left = patience.pause(gone, AbortSignal.abort(new Error('enough')));
    await expect(left).rejects.toThrow('enough');
  });
});

describe('startWait', () => {
  it('gives out what is left, and then is over', async () => {
    const wait = startWait(0.05, 'nothing came');
    expect(wait.leftMs(10)).toBe(10);
    expect(wait.leftMs(1000)).toBeLessThanOrEqual(50);
    await new Promise((resolve) => setTimeout(resolve, 60));
    expect(() => wait.leftMs(10)).toThrow(Timeout);
    expect(() => wait.leftMs(10)).toThrow('nothing came within 0.05 s');
    expect(startWait(undefined, '').leftMs(10)).toBe(10);
  });
});
