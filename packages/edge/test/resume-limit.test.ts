import { createManualClock, type JobId, type SandboxId } from '@dsec/std';
import { expect, it } from 'vitest';
import {
  createResumeLimits,
  jobResumes,
  newResumeBudget,
  SANDBOX_RESUMES,
} from '../src/lifecycle/resume-limit.ts';
import type { SandboxEntry, SandboxHooks } from '../src/sandboxes.ts';
import { CALLER, CREATE, context, createCoreWorld } from './core-world.ts';

const { max: RESUMES_MAX, everyMs: RESUME_EVERY_MS } = SANDBOX_RESUMES;

/** Limits whose sandboxes are told of by hand. */
function createLimits() {
  const clock = createManualClock(1_700_000_000_000);
  let hooks: SandboxHooks = {};
  const hook = (added: SandboxHooks) => {
    hooks = added;
  };
  const limits = createResumeLimits({ hook }, clock);
  let count = 0;
  const sandbox = (job?: string, project = 'p') => {
    count += 1;
    const entry = { id: `sb-${count}` as SandboxId, project, job: job as JobId | undefined };
    const live = { ...entry, resumes: newResumeBudget() } as unknown as SandboxEntry & {
      resumes: ReturnType<typeof newResumeBudget>;
    };
    hooks.running?.(live, 'creating');
    return live;
  };
  const end = (entry: SandboxEntry) => hooks.ended?.(entry);
  return { clock, limits, sandbox, end };
}

it('lets a number through at once, and one more with time', () => {
  const { clock, limits, sandbox } = createLimits();
  const one = sandbox();
  for (let n = 0; n < RESUMES_MAX; n += 1) limits.take(one);
  const details = { limit: 'sandbox', retryAfterMs: RESUME_EVERY_MS };
  expect(() => limits.take(one)).toThrow(
    expect.objectContaining({ code: 'rate-limited', details }),
  );
  clock.advance(RESUME_EVERY_MS);
  limits.take(one);
  expect(() => limits.take(one)).toThrow(/too often/);
  expect(() => limits.take(sandbox())).not.toThrow();
});

it('lets a job wake everything it has twice, and then each now and then', () => {
  const { clock, limits, sandbox } = createLimits();
  const all = Array.from({ length: 500 }, () => sandbox('storm'));
  const wakeAll = () => {
    for (const each of all) limits.take(each);
  };
  wakeAll();
  wakeAll();
  expect(() => limits.take(all[0] as (typeof all)[0])).toThrow(
    expect.objectContaining({
      code: 'rate-limited',
      details: { limit: 'job', retryAfterMs: jobResumes(500).everyMs },
    }),
  );
  // What the job is refused costs the sandbox nothing; other jobs and projects have their own.
  expect(all[0]?.resumes.spent).toBe(2);
  expect(() => limits.take(sandbox('other'))).not.toThrow();
  expect(() => limits.take(sandbox('storm', 'q'))).not.toThrow();
  expect(() => limits.take(sandbox())).not.toThrow();
  clock.advance(500 * jobResumes(500).everyMs);
  wakeAll();
  expect(() => limits.take(all[0] as (typeof all)[0])).toThrow(/the job/);
});

it('forgets a job with its last sandbox', () => {
  const { limits, sandbox, end } = createLimits();
  const pair = [sandbox('job'), sandbox('job')] as const;
  for (let n = 0; n < RESUMES_MAX / 2; n += 1) pair.forEach(limits.take);
  expect(() => limits.take(pair[0])).toThrow(/the job/);
  pair.forEach(end);
  expect(() => limits.take(sandbox('job'))).not.toThrow();
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

it('counts what an earlier edge has left to the job', async () => {
  const clock = createManualClock(1_700_000_000_000);
  const world = createCoreWorld({ clock });
  const first = await world.open();
  const request = { ...CREATE, job: 'storm' as JobId };
  const ids = await Promise.all(
    Array.from(
      { length: 12 },
      async () => (await first.core.lifecycle.create(request, context())).id,
    ),
  );
  await first.crash();
  const { core } = await world.open();
  const wake = async (id: SandboxId) => {
    await core.lifecycle.pause(core.sandboxes.get(id), context());
    await core.sandboxes.requireRunning(id);
  };
  for (let n = 0; n < 2; n += 1) for (const id of ids) await wake(id);
  await expect(wake(ids[0] as SandboxId)).rejects.toMatchObject({
    code: 'rate-limited',
    details: { limit: 'job' },
  });
  expect(core.sandboxes.get(ids[0] as SandboxId)).toMatchObject({ ...CALLER, state: 'paused' });
});
