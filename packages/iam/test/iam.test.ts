import { createManualClock, type PrincipalId, type ProjectId, systemRandom } from '@dsec/std';
import { createMemoryStore } from '@dsec/store';
import { expect, test } from 'vitest';
import { openIam } from '../src/index.ts';

const project = 'p' as ProjectId;
const owner = { project, principal: 'u' as PrincipalId, scopes: ['exec'] as const };

function open() {
  const clock = createManualClock(1_000_000);
  const store = createMemoryStore({ clock });
  return { clock, store, iam: openIam({ store, clock, random: systemRandom }) };
}
const refusal = expect.objectContaining({
  code: 'unauthenticated',
  message: 'the request carries no valid API key',
});

test('a key lets in its owner, with its scopes', async () => {
  const { iam } = open();
  const { key, secret } = await iam.create({ name: 'k', ...owner });
  expect(await iam.authenticate(`Bearer ${secret}`)).toEqual({ keyId: key.id, ...owner });
  const short = await iam.create({ name: 's', ...owner, lifetimeMs: 1000 });
  const { expiresAtMs } = await iam.authenticate(`Bearer ${short.secret}`);
  expect(expiresAtMs).toBe(short.key.expiresAtMs);
});

test('missing, malformed, wrong, expired and revoked are one and the same', async () => {
  const { iam, clock } = open();
  const good = await iam.create({ name: 'good', ...owner });
  const short = await iam.create({ name: 'short', ...owner, lifetimeMs: 1000 });
  const revoked = await iam.create({ name: 'revoked', ...owner });
  await iam.revoke(revoked.key.id);
  clock.advance(1000);
  for (const header of [
    ...[undefined, '', 'Bearer', 'Bearer ', `Basic ${good.secret}`, good.secret],
    ...[`Bearer ${good.secret} `, `Bearer ${good.secret.slice(0, -1)}`, `bearer ${good.secret}`],
    ...[`Bearer dsec_${'x'.repeat(43)}`, `Bearer ${short.secret}`, `Bearer ${revoked.secret}`],
  ]) {
    await expect(iam.authenticate(header), header ?? 'none').rejects.toEqual(refusal);
  }
  expect((await iam.authenticate(`Bearer ${good.secret}`)).keyId).toBe(good.key.id);
});

test('lists those of a project, page by page, or those of all', async () => {
  const { iam } = open();
  const made = [];
  for (let index = 0; index < 5; index += 1)
    made.push((await iam.create({ name: `k${index}`, ...owner })).key.id);
  await iam.create({ name: 'other', ...owner, project: 'dotted.' as ProjectId });
  const first = await iam.list({ project, limit: 3 });
  const rest = await iam.list({ project, limit: 3, after: first.next });
  expect([...first.keys, ...rest.keys].map(({ id }) => id)).toEqual([...made].sort());
  expect(rest.next).toBeUndefined();
  expect((await iam.list({ limit: 100 })).keys).toHaveLength(6);
  expect((await iam.list({ project: 'dotted.' as ProjectId, limit: 9 })).keys).toHaveLength(1);
});

test('a revoked key stays listed for a while; one of another project is not found', async () => {
  const { iam, clock } = open();
  const { key } = await iam.create({ name: 'k', ...owner });
  await expect(iam.revoke(key.id, 'other' as ProjectId)).rejects.toMatchObject({
    code: 'not-found',
  });
  await iam.revoke(key.id, project);
  await iam.revoke(key.id, project);
  expect((await iam.find(key.id, project)).revokedAtMs).toBe(1_000_000);
  clock.advance(31 * 24 * 3_600_000);
  await expect(iam.find(key.id)).rejects.toMatchObject({ code: 'not-found' });
  expect((await iam.list({ project, limit: 9 })).keys).toEqual([]);
});

test('notes when a key was last used, seldom, and never over a revocation', async () => {
  const { iam, clock } = open();
  const { key, secret } = await iam.create({ name: 'k', ...owner });
  const used = async () => {
    await iam.authenticate(`Bearer ${secret}`);
    await new Promise((resolve) => setImmediate(resolve));
    return (await iam.find(key.id)).lastUsedAtMs;
  };
  expect(await used()).toBe(1_000_000);
  clock.advance(1000);
  expect(await used()).toBe(1_000_000);
  clock.advance(300_000);
  expect(await used()).toBe(1_301_000);
  clock.advance(300_000);
  const racing = iam.authenticate(`Bearer ${secret}`);
  await iam.revoke(key.id);
  await racing;
  await new Promise((resolve) => setImmediate(resolve));
  expect((await iam.find(key.id)).revokedAtMs).toBeDefined();
});

test('a key holds while the keys that it comes of do', async () => {
  const { iam, clock } = open();
  const makeWith = async (secret: string) =>
    iam.create({ name: 'k', ...owner, maker: await iam.authenticate(`Bearer ${secret}`) });
  const first = await iam.create({ name: 'first', ...owner });
  const second = await makeWith(first.secret);
  const third = await makeWith(second.secret);
  const sibling = await makeWith(first.secret);
  const { makers } = await iam.authenticate(`Bearer ${third.secret}`);
  expect(makers).toEqual([second.key.id, first.key.id]);
  expect(third.key).not.toHaveProperty('makers');
  const isIn = ({ secret }: { secret: string }) =>
    iam.authenticate(`Bearer ${secret}`).then(
      () => true,
      (thrown) => {
        expect(thrown).toEqual(refusal);
        return false;
      },
    );
  await iam.revoke(second.key.id);
  expect(await Promise.all([first, second, third, sibling].map(isIn))).toEqual([
    ...[true, false, false, true],
  ]);
  // Also when nothing is known of a maker any more.
  clock.advance(31 * 24 * 3_600_000);
  expect(await Promise.all([third, sibling].map(isIn))).toEqual([false, true]);
  await iam.revoke(first.key.id);
  expect(await isIn(sibling)).toBe(false);
});

test('a key makes others only so many times over', async () => {
  const { iam } = open();
  let { secret } = await iam.create({ name: 'first', ...owner });
  const make = async () =>
    iam.create({ name: 'k', ...owner, maker: await iam.authenticate(`Bearer ${secret}`) });
  for (let depth = 0; depth < 8; depth += 1) ({ secret } = await make());
  await expect(make()).rejects.toMatchObject({ code: 'permission-denied', details: { max: 8 } });
});
