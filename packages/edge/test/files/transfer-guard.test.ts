import { DsecError } from '@dsec/std';
import { expect, it } from 'vitest';
import { createTransferGuard } from '../../src/files/transfer-guard.ts';

const never = (signal: AbortSignal) =>
  new Promise<never>((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
  );

it('ends a step that takes too long, and no other time', async () => {
  const guard = createTransferGuard(undefined, () => {}, 30);
  await guard.step(Promise.resolve(1));
  await new Promise((resolve) => setTimeout(resolve, 90));
  expect(guard.signal.aborted).toBe(false);
  await expect(guard.step(never(guard.signal))).rejects.toMatchObject({
    code: 'deadline-exceeded',
  });
  guard.stop();
});

it('ends with its caller', async () => {
  const stop = new AbortController();
  const guard = createTransferGuard(stop.signal, () => {});
  stop.abort(new DsecError('cancelled', 'gone'));
  expect(guard.signal.reason).toMatchObject({ code: 'cancelled', message: 'gone' });
  guard.stop();
  expect(createTransferGuard(stop.signal, () => {}).signal.aborted).toBe(true);
});

it('tells of use, but not of each step', async () => {
  let uses = 0;
  const guard = createTransferGuard(undefined, () => {
    uses += 1;
  });
  for (let i = 0; i < 1000; i += 1) await guard.step(Promise.resolve());
  expect(uses).toBe(0);
  await new Promise((resolve) => setTimeout(resolve, 1050));
  for (let i = 0; i < 1000; i += 1) await guard.step(Promise.resolve());
  expect(uses).toBe(1);
  guard.stop();
});
