/** Alarms of watched paths, in real sandboxes: what a session does to them by every way there is. */
import { ROUTES } from '@dsec/protocol';
import type { SandboxId } from '@dsec/std';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { context, LIMITS, openSecurityWorld, type SecurityWorld } from './security-world.ts';

const isRoot = process.getuid?.() === 0;

describe.skipIf(!isRoot)('114 tamper (needs root)', () => {
  let world: SecurityWorld;
  beforeAll(async () => {
    world = await openSecurityWorld();
  }, 120_000);
  afterAll(async () => {
    expect((await world?.close()) ?? []).toEqual([]);
  });

  async function attempt(watchPaths: string[] | undefined, attack: string) {
    const { edge } = world;
    const request = { layers: ['base/small:1.0.0'], limits: LIMITS };
    const spec = watchPaths === undefined ? request : { ...request, watchPaths };
    const entry = await edge.lifecycle.create(spec, context());
    const look = async () => {
      const caller = { params: {}, query: { sandbox: entry.id } };
      await world.client.call(ROUTES.getAudit, caller);
      return (edge.audit.find(entry.id as SandboxId)?.rows ?? []).map(
        ({ reason, target }) => `${reason} ${target}`,
      );
    };
    try {
      const before = await look();
      const shell = { shell: attack, waitMs: 30_000 };
      const { exec, stderr } = await edge.exec.execs.start(entry, shell, context());
      expect(exec.exit, stderr?.text).toMatchObject({ exitCode: 0 });
      return { before, after: await look(), again: await look() };
    } finally {
      await edge.lifecycle.stop(entry, context());
    }
  }

  const KEEP = 'cp -p /etc/shared /tmp/old';
  const ROWS: readonly (readonly [what: string, attack: string, alarms: readonly string[]])[] = [
    ['other content', 'echo forged > /etc/shared', ['written /etc/shared']],
    [
      'other content of the same size and time',
      `${KEEP}; printf 'as all have iT\\n' > /etc/shared; touch -r /tmp/old /etc/shared`,
      ['written /etc/shared'],
    ],
    [
      'another name, by which it could be written',
      'ln /etc/shared /tmp/alias',
      ['linked /etc/shared'],
    ],
    ['rights', 'chmod 0777 /etc/shared', ['rights /etc/shared']],
    ['a link in its place', 'rm /etc/shared; ln -s /tmp/x /etc/shared', ['replaced /etc/shared']],
    ['removal', 'rm /etc/shared', ['removed /etc/shared']],
    ['another file beside it', 'echo x > /etc/conftest.py', ['added /etc/conftest.py']],
  ];

  it.each(ROWS)('%s', async (_, attack, alarms) => {
    const watched = await attempt(['/etc'], attack);
    expect(watched.before).toEqual([]);
    for (const alarm of alarms) expect(watched.after).toContain(alarm);
    // Each change is told once.
    expect(watched.again).toEqual(watched.after);
    // The control: without a watch it is done, and nobody hears of it.
    const unwatched = await attempt(undefined, attack);
    expect([...unwatched.before, ...unwatched.after]).toEqual([]);
  });

  it('what happens elsewhere is no alarm', async () => {
    const { after } = await attempt(['/etc'], 'echo x > /tmp/other; cat /etc/shared; ls -l /etc');
    expect(after).toEqual([]);
  });
});
