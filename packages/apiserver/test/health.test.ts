import { createManualClock, DsecError, systemRandom } from '@dsec/std';
import { createMemoryStore } from '@dsec/store';
import { expect, test, vi } from 'vitest';
import { createHealth } from '../src/health.ts';

const watcher = { edges: () => [{ edge: 'e1', error: undefined }] } as never;

function open() {
  const clock = createManualClock(1_000_000);
  const { keys } = createMemoryStore({ clock });
  const put = vi.fn(keys.put);
  const health = createHealth({ keys: { ...keys, put }, watcher, clock, random: systemRandom });
  return { clock, put, health };
}
const storeOf = async (health: ReturnType<typeof createHealth>) => {
  const { ok, parts } = await health();
  return { ok, detail: parts[0]?.detail };
};

test('a store that cannot be written is not ok, and says why', async () => {
  const { clock, put, health } = open();
  expect(await storeOf(health)).toEqual({ ok: true, detail: undefined });
  put.mockRejectedValue(new DsecError('storage-full', 'no space'));
  clock.advance(5000);
  expect(await storeOf(health)).toEqual({ ok: false, detail: 'storage-full' });
  put.mockResolvedValue(1);
  clock.advance(5000);
  expect(await storeOf(health)).toEqual({ ok: true, detail: undefined });
});

test('it is written seldom and once at a time, however many ask, and not waited for long', async () => {
  const { clock, put, health } = open();
  await Promise.all(Array.from({ length: 50 }, health));
  expect(put).toHaveBeenCalledTimes(1);
  expect(put.mock.calls[0]?.[2]).toEqual({ ttlMs: 60_000 });
  clock.advance(5000);
  put.mockReturnValue(new Promise(() => undefined));
  const stuck = storeOf(health);
  await vi.waitFor(() => expect(put).toHaveBeenCalledTimes(2));
  clock.advance(2000);
  expect(await stuck).toEqual({ ok: false, detail: 'deadline-exceeded' });
  clock.advance(60_000);
  expect((await storeOf(health)).ok).toBe(false);
  expect(put).toHaveBeenCalledTimes(2);
});
