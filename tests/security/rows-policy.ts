/** What a policy denies, by every way that root inside has to it. Each way works in a sandbox without one. */
import type { PolicyDocument } from '@dsec/protocol';
import { expect } from 'vitest';
import type { CheckedRow } from './rows.ts';
import { type Box, context, type SecurityWorld } from './security-world.ts';

/** Texts for a shell that end well when they get what they want. */
type Attempts = readonly string[];

async function successes(box: Box, attempts: Attempts): Promise<string[]> {
  const found: string[] = [];
  for (const attempt of attempts) {
    const { exec } = await box.run(['/bin/sh', '-c', `(${attempt}) >/dev/null 2>&1`]);
    if (exec.exit?.exitCode === 0) found.push(attempt);
  }
  return found;
}

/** Each attempt in a sandbox of its own kind, as one may spoil the next. */
async function succeededOf(
  world: SecurityWorld,
  policy: string | PolicyDocument,
  attempts: Attempts,
): Promise<string[]> {
  const found: string[] = [];
  for (const attempt of attempts) {
    const box = await world.make({}, [], { policy });
    found.push(...(await successes(box, [attempt])));
    await box.stop();
  }
  return found;
}

function row(
  id: number,
  name: string,
  policy: 'locked' | Omit<PolicyDocument, 'version'>,
  attempts: Attempts,
): CheckedRow {
  const document = typeof policy === 'string' ? policy : ({ version: 1, ...policy } as const);
  return {
    ...{ id, name: `policy-${name}`, expected: 'refused by every way' },
    async check(world) {
      expect(await succeededOf(world, 'open', attempts), 'without the policy').toEqual(attempts);
      expect(await succeededOf(world, document, attempts), 'with it').toEqual([]);
    },
  };
}

/** A masked file is an empty one, so what is read has to be the text. */
const ALIASES = (path: string): Attempts =>
  [
    `cat ${path}`,
    `cat /proc/self/root${path}`,
    `ln -s ${path} /tmp/s && cat /tmp/s`,
    `ln ${path} /tmp/h && cat /tmp/h`,
    `cp ${path} /tmp/c && cat /tmp/c`,
    `mv ${path} /tmp/m && cat /tmp/m`,
    `exec 3<${path} && cat /proc/self/fd/3`,
    `cd / && cat ./tmp/..${path}`,
  ].map((attempt) => `test -n "$(${attempt})"`);

/** Opened, and stood in, before the switch that hides it: by a session, a command and what it left. */
async function stageHides(world: SecurityWorld): Promise<void> {
  const files: PolicyDocument['files'] = [{ path: '/etc/**', access: ['hide'] }];
  const policy: PolicyDocument = { version: 1, stages: { solve: { files } } };
  const holder =
    'cd /etc; exec 3</etc/shared; echo holds; trap "" TERM; sleep 3; cat <&3 ./shared > /tmp/leak';
  for (const stage of ['build', 'solve'] as const) {
    const box = await world.make({}, [], { policy, stage: 'build' });
    await box.start(['/bin/sh', '-c', holder], 'holds');
    await box.start(['/bin/sh', '-c', `setsid sh -c '${holder}' & sleep 1; echo left`], 'left');
    await world.edge.lifecycle.setStage(box.entry, stage, false, context());
    const { stdout } = await box.run(['/bin/sh', '-c', 'sleep 4; cat /tmp/leak /etc/shared']);
    expect(stdout.includes('as all have it')).toBe(stage === 'build');
    await box.stop();
  }
}

const rows = {
  hide: { files: [{ path: '/etc/shared', access: ['hide'] }] },
  hideTree: { files: [{ path: '/etc/**', access: ['hide'] }] },
  readonly: { files: [{ path: '/etc/**', access: ['read', 'exec'] }] },
  noExec: { files: [{ path: '/bin/probe', access: ['read'] }] },
} satisfies Record<string, Omit<PolicyDocument, 'version'>>;

export const POLICY_ROWS: readonly CheckedRow[] = [
  row(120, 'hide-file', rows.hide, ALIASES('/etc/shared')),
  row(121, 'hide-tree', rows.hideTree, [
    ...ALIASES('/etc/shared'),
    'mv /etc /tmp/e && cat /tmp/e/shared',
  ]),
  row(122, 'read-only', rows.readonly, [
    'echo x > /etc/shared',
    'rm /etc/shared',
    'mv /etc/shared /tmp/x',
    'chmod 0 /etc/shared',
    'ln /etc/shared /tmp/x && echo x > /tmp/x',
    'truncate -s 0 /etc/shared',
    'mkdir /etc/new',
  ]),
  row(123, 'no-exec', rows.noExec, [
    '/bin/probe plain || test $? -lt 126',
    'ln /bin/probe /tmp/p; /tmp/p plain || test $? -lt 126',
  ]),
  row(124, 'locked', 'locked', [
    'echo x > /etc/shared',
    'rm /bin/true',
    'mkdir /new',
    'ln -s /etc /tmp/l && echo x > /tmp/l/shared',
    'mv /tmp /other',
    'mknod /etc/fifo p',
    'truncate -s 0 /etc/shared',
  ]),
  row(125, 'system-call', { syscalls: [{ call: 'unlinkat' }, { call: 'unlink' }] }, [
    'rm /etc/shared',
    'sh -c "rm /etc/passwd"',
  ]),
  row(126, 'capability', { capabilities: [] }, [
    'touch /tmp/t && chown 5:5 /tmp/t',
    'touch /tmp/t && chmod 0 /tmp/t && chown user /tmp/t',
  ]),
  row(127, 'socket', { sockets: [{ family: 'unix' }] }, [
    '/bin/probe sockets | { while read -r l; do test "$l" = "socket-tcp 0" && exit 0; done; exit 1; }',
    '/bin/probe sockets | { while read -r l; do test "$l" = "socket-route 0" && exit 0; done; exit 1; }',
  ]),
  row(128, 'device', { devices: ['null'] }, [
    'test "$(head -c 4 /dev/zero | tr "\\0" x)" = xxxx',
    'test -n "$(head -c 4 /dev/urandom | tr "\\0" x)"',
  ]),
  { id: 129, name: 'policy-stage', expected: 'who had it open is ended', check: stageHides },
];
