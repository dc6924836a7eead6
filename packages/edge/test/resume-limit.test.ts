import { createManualClock } from '@dsec/std';
import { expect, it } from 'vitest';
import {
  newResumeBudget,
  RESUME_EVERY_MS,
  RESUMES_MAX,
  takeResume,
} from '../src/lifecycle/resume-limit.ts';
import { CREATE, context, createCoreWorld } from './core-world.ts';

it('lets a number through at once, and one more with time', () => {
  const budget = newResumeBudget();
  for (let n = 0; n < RESUMES_MAX; n += 1) takeResume(budget, 5000);
  expect(() => takeResume(budget, 5000)).toThrow(
    expect.objectContaining({ code: 'rate-limited', details: { retryAfterMs: RESUME_EVERY_MS } }),
  );
  takeResume(budget, 5000 + RESUME_EVERY_MS);
  expect(() => takeResume(budget, 5000 + RESUME_EVERY_MS)).toThrow(/too often/);
  expect(() => takeResume(newResumeBudget(), 1e12)).not.toThrow();
});

it('leaves a sandbox paused that is woken too often, and goes on later', async () => {
  const clock = createManualClock(1_700_000_000_000);
  const { core } = await createCoreWorld({ clock }).open();
  const entry = await core.lifecycle.create(CREATE, context());
  const cycle = async () => {
    await core.lifecycle.pause(entry, context());
    await core.sandboxes.requireRunning(entry.id);
  };
  for (let n = 0; n < RESUMES_MAX; n += 1) await cycle();
  await expect(cycle()).rejects.toMatchObject({ code: 'rate-limited' });
  expect(entry.state).toBe('paused');
  clock.advance(RESUME_EVERY_MS);
  await core.sandboxes.requireRunning(entry.id);
  expect(entry.state).toBe('running');
});
