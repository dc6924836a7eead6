import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JOURNAL_TABLES, openIdempotency, openJournal } from '@dsec/edge';
import {
  createManualClock,
  createSeededRandom,
  DsecError,
  digestOfHex,
  HOUR_MS,
  parsePrincipalId,
  parseProjectId,
  type SandboxId,
} from '@dsec/std';
import { expect, it, onTestFinished } from 'vitest';
import { BOOT_ID } from '../core-world.ts';

const DIGEST = digestOfHex('a'.repeat(64));
const caller = (project = 'p', principal = 'me') => ({
  project: parseProjectId(project),
  principal: parsePrincipalId(principal),
});

function open(root = mkdtempSync(join(tmpdir(), 'dsec-keys-')), bootId = BOOT_ID) {
  onTestFinished(() => rmSync(root, { recursive: true, force: true }));
  const clock = createManualClock();
  const random = createSeededRandom(1);
  const journal = openJournal(root, { clock, random, tables: JOURNAL_TABLES, bootId });
  onTestFinished(() => {
    if (journal.db.open) journal.close();
  });
  const idempotency = openIdempotency(journal, clock);
  let begun = 0;
  const begin = async () => () => {
    begun += 1;
    return `id-${begun}`;
  };
  const count = () => journal.db.prepare('SELECT count(*) FROM idempotency').pluck().get();
  return { root, clock, journal, idempotency, begin, count };
}

const scope = { caller: caller(), route: 'createSandbox', key: 'k' };

it('begins once for a key, in the same place', async () => {
  const { idempotency, begin } = open();
  const results = await Promise.all([1, 2, 3].map(() => idempotency.run(scope, DIGEST, begin)));
  expect(results).toEqual([
    { id: 'id-1', repeated: false },
    { id: 'id-1', repeated: true },
    { id: 'id-1', repeated: true },
  ]);
  const elsewhere = [
    { ...scope, caller: caller('q') },
    { ...scope, caller: caller('p', 'you') },
    { ...scope, route: 'startExec' },
    { ...scope, sandbox: 'sb-s-e-aaaaaaaaaaaaaaaa' as SandboxId },
    { ...scope, key: 'l' },
  ];
  for (const other of elsewhere) {
    expect((await idempotency.run(other, DIGEST, begin)).repeated).toBe(false);
  }
});

it('begins every time without a key', async () => {
  const { idempotency, begin, count } = open();
  const keyless = { ...scope, key: undefined };
  expect((await idempotency.run(keyless, DIGEST, begin)).id).toBe('id-1');
  expect((await idempotency.run(keyless, DIGEST, begin)).id).toBe('id-2');
  expect(count()).toBe(0);
});

it('refuses another request with the key', async () => {
  const { idempotency, begin } = open();
  await idempotency.run(scope, DIGEST, begin);
  await expect(idempotency.run(scope, digestOfHex('b'.repeat(64)), begin)).rejects.toMatchObject({
    code: 'idempotency-conflict',
  });
});

it('remembers nothing of what did not begin, and lets the next one try', async () => {
  const { idempotency, begin, count } = open();
  const failing = idempotency.run(scope, DIGEST, () =>
    Promise.reject(new DsecError('overloaded', 'no room')),
  );
  const waiting = idempotency.run(scope, DIGEST, begin);
  await expect(failing).rejects.toMatchObject({ code: 'overloaded' });
  expect(await waiting).toEqual({ id: 'id-1', repeated: false });
  const rolledBack = idempotency.run({ ...scope, key: 'l' }, DIGEST, async () => () => {
    throw new DsecError('overloaded', 'no room any more');
  });
  await expect(rolledBack).rejects.toMatchObject({ code: 'overloaded' });
  expect(count()).toBe(1);
});

it('survives the process, and a restart of the machine', async () => {
  const first = open();
  await first.idempotency.run(scope, DIGEST, first.begin);
  first.journal.close();
  const second = open(first.root, BOOT_ID.replaceAll('1', '2'));
  expect(await second.idempotency.run(scope, DIGEST, second.begin)).toEqual({
    ...{ id: 'id-1', repeated: true },
  });
});

it('forgets a key after a day, whatever the wall clock says', async () => {
  const { idempotency, begin, clock, count } = open();
  await idempotency.run(scope, DIGEST, begin);
  clock.stepWall(100 * HOUR_MS);
  clock.advance(23 * HOUR_MS);
  expect(idempotency.expire()).toBe(0);
  clock.advance(2 * HOUR_MS);
  expect(idempotency.expire()).toBe(1);
  expect(count()).toBe(0);
  expect((await idempotency.run(scope, DIGEST, begin)).repeated).toBe(false);
});

it('bounds the keys of a project, giving up only old ones', async () => {
  const { journal, clock } = open();
  const insert = journal.db.prepare("INSERT INTO idempotency VALUES (?, 'p', ?, 'x', ?, ?)");
  journal.transaction(() => {
    for (let n = 0; n < 200_000; n += 1) insert.run(`s${n}`, DIGEST, BOOT_ID, 0);
  });
  const idempotency = openIdempotency(journal, clock);
  const begin = async () => () => 'id';
  await expect(idempotency.run(scope, DIGEST, begin)).rejects.toMatchObject({
    code: 'quota-exceeded',
  });
  expect((await idempotency.run({ ...scope, caller: caller('q') }, DIGEST, begin)).id).toBe('id');
  clock.advance(HOUR_MS);
  expect((await idempotency.run(scope, DIGEST, begin)).repeated).toBe(false);
  const ofP = journal.db.prepare("SELECT count(*) FROM idempotency WHERE project = 'p'");
  expect(ofP.pluck().get()).toBe(200_000);
});

const REFUSALS = new Set(['not-found'] as const);

/** Does nothing, and counts how often. */
function effects(failure?: DsecError) {
  const count = { begun: 0 };
  const effect = async () => {
    count.begun += 1;
    if (failure !== undefined && count.begun === 1) throw failure;
  };
  return { count, effect };
}

it('attempts what lies elsewhere once', async () => {
  const { idempotency } = open();
  const { count, effect } = effects();
  const attempt = () => idempotency.attempt(scope, DIGEST, REFUSALS, effect);
  await Promise.all([attempt(), attempt()]);
  await attempt();
  expect(count.begun).toBe(1);
  await idempotency.attempt({ ...scope, key: undefined }, DIGEST, REFUSALS, effect);
  expect(count.begun).toBe(2);
});

it('attempts again what was refused, and gives its place back', async () => {
  const { idempotency, count: rows } = open();
  const { count, effect } = effects(new DsecError('not-found', 'no such file'));
  const attempt = () => idempotency.attempt(scope, DIGEST, REFUSALS, effect);
  await expect(attempt()).rejects.toMatchObject({ code: 'not-found' });
  expect(rows()).toBe(0);
  await attempt();
  expect([count.begun, rows()]).toEqual([2, 1]);
});

it('never attempts again what may have been done', async () => {
  const { idempotency } = open();
  const { count, effect } = effects(new DsecError('agent-lost', 'the link was lost'));
  const attempt = (digest = DIGEST) => idempotency.attempt(scope, digest, REFUSALS, effect);
  await expect(attempt()).rejects.toMatchObject({ code: 'agent-lost' });
  const undecided = { code: 'state-conflict', details: { undecided: true } };
  await expect(attempt()).rejects.toMatchObject(undecided);
  await expect(attempt()).rejects.toMatchObject(undecided);
  await expect(attempt(digestOfHex('b'.repeat(64)))).rejects.toMatchObject({
    code: 'idempotency-conflict',
  });
  expect(count.begun).toBe(1);
});

it('knows after a crash that an attempt was begun', async () => {
  const { idempotency, journal, root } = open();
  const { count, effect } = effects();
  const begun = new Promise<void>((resolve) => {
    void idempotency.attempt(scope, DIGEST, REFUSALS, () => new Promise(() => resolve()));
  });
  await begun;
  journal.close();
  const next = open(root).idempotency;
  await expect(next.attempt(scope, DIGEST, REFUSALS, effect)).rejects.toMatchObject({
    code: 'state-conflict',
    details: { undecided: true },
  });
  expect(count.begun).toBe(0);
});
