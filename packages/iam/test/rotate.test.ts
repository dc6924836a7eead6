import { createManualClock, type PrincipalId, type ProjectId, systemRandom } from '@dsec/std';
import { createMemoryStore } from '@dsec/store';
import { expect, test } from 'vitest';
import { openIam } from '../src/index.ts';

const owner = {
  ...{ project: 'p' as ProjectId, principal: 'u' as PrincipalId, scopes: ['exec'] as const },
};

function open() {
  const clock = createManualClock(1_000_000);
  const iam = openIam({ store: createMemoryStore({ clock }), clock, random: systemRandom });
  const isGood = (secret: string) =>
    iam.authenticate(`Bearer ${secret}`).then(
      () => true,
      ({ code }) => {
        expect(code).toBe('unauthenticated');
        return false;
      },
    );
  return { clock, iam, isGood };
}

test('a key keeps its id and what comes of it; the old secret is good for its grace', async () => {
  const { clock, iam, isGood } = open();
  const first = await iam.create({ name: 'k', ...owner });
  const maker = await iam.authenticate(`Bearer ${first.secret}`);
  const child = await iam.create({ name: 'child', ...owner, maker });
  const second = await iam.rotate(first.key.id, { graceMs: 1000 });
  expect(second.key.id).toBe(first.key.id);
  expect(second.key).not.toHaveProperty('previous');
  expect((await iam.authenticate(`Bearer ${second.secret}`)).keyId).toBe(first.key.id);
  expect(await iam.authenticate(`Bearer ${first.secret}`)).toMatchObject({ isRetired: true });
  expect(await iam.authenticate(`Bearer ${second.secret}`)).not.toHaveProperty('isRetired');
  expect(await Promise.all([first, second, child].map(({ secret }) => isGood(secret)))).toEqual([
    ...[true, true, true],
  ]);
  clock.advance(1000);
  expect(await Promise.all([first, second, child].map(({ secret }) => isGood(secret)))).toEqual([
    ...[false, true, true],
  ]);
  // Listed once, and found by no other id.
  expect((await iam.list({ limit: 9 })).keys.map(({ name }) => name).sort()).toEqual([
    'child',
    'k',
  ]);
  await iam.revoke(first.key.id);
  expect(await Promise.all([second, child].map(({ secret }) => isGood(secret)))).toEqual([
    ...[false, false],
  ]);
});

test('without a grace nothing that was good before is', async () => {
  const { iam, isGood } = open();
  const { key, secret } = await iam.create({ name: 'k', ...owner });
  const second = await iam.rotate(key.id, { graceMs: 60_000 });
  const third = await iam.rotate(key.id, { graceMs: 0 });
  expect(await Promise.all([secret, second.secret, third.secret].map(isGood))).toEqual([
    ...[false, false, true],
  ]);
});

test('so many are good at a time; revoked, expired and others are not rotated', async () => {
  const { clock, iam } = open();
  const { key } = await iam.create({ name: 'k', ...owner, lifetimeMs: 10_000 });
  for (let count = 0; count < 4; count += 1) await iam.rotate(key.id, { graceMs: 1000 });
  const again = () => iam.rotate(key.id, { graceMs: 1000 });
  await expect(again()).rejects.toMatchObject({ code: 'conflict', details: { max: 4 } });
  clock.advance(1000);
  const late = await again();
  await expect(
    iam.rotate(key.id, { graceMs: 0, project: 'other' as ProjectId }),
  ).rejects.toMatchObject({ code: 'not-found' });
  const check = () => {
    throw new Error('not this one');
  };
  await expect(iam.rotate(key.id, { graceMs: 0, check })).rejects.toThrow('not this one');
  expect((await iam.authenticate(`Bearer ${late.secret}`)).keyId).toBe(key.id);
  clock.advance(9000);
  await expect(again()).rejects.toMatchObject({ code: 'state-conflict' });
});
