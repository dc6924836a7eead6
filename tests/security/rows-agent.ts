/** The agent, and what commands can make of their own results. */
import { readdirSync } from 'node:fs';
import { constants } from 'node:os';
import { ROUTES } from '@dsec/protocol';
import { expect } from 'vitest';
import { until } from '../integration/launcher-world.ts';
import { expectRefused, expectUnharmed, type Row, withBox } from './rows.ts';
import { type Box, context, type SecurityWorld } from './security-world.ts';
import { countOf, holdPlain, outcomesOf, runHost, runPlain } from './unprotected.ts';

const MINUTES = '600';
const BOMB_CHILDREN = process.env.DSEC_TEST_LONG === '1' ? 200 : 40;
/** Many at a time fight over what memory there is, and only one after the other is killed for it. */
const BOMB_MS = 200_000;

/** Every process of the agent's program beside the first, as the sandbox numbers it. */
const helpersOf = (box: Box) =>
  box.host.processes().filter(({ inner, name }) => inner > 1 && name === 'aether');

/** A session that does all that a shell can do to forge its results. */
async function forgedSession({ edge }: SecurityWorld, box: Box) {
  const session = await edge.exec.sessions.open(box.entry, {}, context());
  const forgery = `trap 'exit 0' EXIT; PROMPT_COMMAND='exit 0'; false() { return 0; }; exec 2>&1; false`;
  const { exec } = await box.run(forgery, { session: session.id });
  const after = await box.run('false', { session: session.id });
  await edge.exec.sessions.close(box.entry, session.id, context());
  return { exec, after: after.exec };
}

/** What an agent without a subreaper for each command leaves of the same tree. */
function leftByTimeout(script: string): number {
  const command = `timeout -s KILL 1 sh -c '${script}'; sleep 0.2; grep -l . /proc/[0-9]*/cmdline`;
  const inner = `${command} | while read f; do tr '\\0' ' ' < $f; echo; done | grep -c "^sleep ${MINUTES}"`;
  const said = runHost('unshare', '-mpf', '--kill-child', '--mount-proc', 'sh', '-c', inner);
  return Number(said.trim().split('\n').at(-1));
}

const TREE = `setsid sleep ${MINUTES} & (setsid sleep ${MINUTES} & sleep ${MINUTES}) & echo grown; `;

export const AGENT_ROWS: readonly Row[] = [
  {
    ...{ id: 2, name: 'agent-signal', expected: 'no signal reaches the agent, and it goes on' },
    async check(world) {
      const control = runPlain('signals');
      // All but four (KILL, STOP, CHLD, CONT) and three at most that a C library keeps.
      expect(countOf(control, 'handled')).toBeGreaterThanOrEqual(64 - 4 - 3);
      expect(countOf(control, 'received')).toBe(countOf(control, 'handled'));
      await withBox(world, async (box) => {
        await box.start(['/bin/sleep', MINUTES], '');
        await expectUnharmed(box, async () => {
          await expectRefused(box, { words: ['signals'], harmless: ['pipe-10'] });
          await box.probe('kill-all');
        });
        // The second time with all that is left of the agent's own in there.
        await box.start(['/bin/sleep', MINUTES], '');
        for (const { inner, pid } of helpersOf(box)) {
          const { stdout } = await box.probe('signals', `${inner}`);
          const sent = [...outcomesOf(stdout)].filter(
            ([item, outcome]) => outcome === 'ok' && !item.startsWith('pipe'),
          );
          expect(sent, `to the agent's process ${pid}`).toEqual([]);
        }
      });
    },
  },
  {
    ...{
      id: 3,
      name: 'agent-ptrace',
      expected: 'nothing of the agent can be read, traced or taken',
    },
    check: (world) =>
      withBox(world, (box) =>
        expectUnharmed(box, () =>
          // Without a mapping to advise about, the control is told so instead of being refused.
          expectRefused(box, { words: ['trace'], unproven: ['open-map_files'] }),
        ),
      ),
  },
  {
    ...{
      id: 4,
      name: 'agent-sched',
      expected: 'no priority, processor, limit or score of it changes',
    },
    check: (world) =>
      withBox(world, (box) =>
        expectUnharmed(box, () =>
          expectRefused(box, {
            words: ['steer'],
            refusals: ['EPERM', 'EACCES', 'ESRCH', 'ENOENT', 'EINVAL', 'EBADF'],
            // Not in every kernel, only for the dying, or never for another process.
            unproven: [
              ...['priority-group', 'group', 'reap-memory', 'write-comm', 'write-loginuid'],
              ...['write-attr/current', 'write-uid_map', 'write-setgroups', 'write-make-it-fail'],
              ...['write-sched', 'write-autogroup', 'migrate-pages'],
            ],
          }),
        ),
      ),
  },
  {
    ...{ id: 5, name: 'agent-oom', expected: 'the bomb dies as `oom`; agent and neighbours live' },
    async check(world) {
      const control = await holdPlain('memory', 'anonymous', '256');
      expect(control.output).toContain('all-taken 0');
      await control.release();
      const neighbour = await world.make();
      await withBox(
        world,
        async (box) => {
          await expectUnharmed(box, async () => {
            const bomb = await box.run(
              `echo -1000 > /proc/self/oom_score_adj; i=0; while [ $i -lt ${BOMB_CHILDREN} ]; ` +
                'do tail /dev/zero & i=$((i+1)); done; wait; echo over',
              { waitMs: BOMB_MS },
            );
            expect(bomb.stdout).toContain('over');
            expect(bomb.stderr).toContain('error');
            const alone = await box.run(['/bin/tail', '/dev/zero']);
            expect(alone.exec.exit).toMatchObject({ signal: 9, oomKilled: true, timedOut: false });
          });
          const { memoryPeakBytes, oomKills } = await world.edge.backend.stats(box.entry.key);
          expect(memoryPeakBytes).toBeLessThanOrEqual(box.entry.plan.limits.memoryBytes);
          expect(oomKills).toBeGreaterThan(0);
          expect((await neighbour.run('echo here')).stdout).toBe('here\n');
        },
        { pidsMax: 256, memoryBytes: 64 * 2 ** 20, diskBytes: 8 * 2 ** 20 },
      );
      await neighbour.stop();
    },
  },
  {
    ...{
      id: 6,
      name: 'sentinel-forge',
      expected: 'a command ends at its own exit, whatever it prints',
    },
    check: (world) =>
      withBox(world, async (box) => {
        // A runner that reads the status from the output is fooled by it.
        const told = runHost('sh', '-c', '(echo END:0; exit 3); echo END:$?');
        expect(/END:(\d+)/.exec(told)?.[1]).toBe('0');
        const before = await box.run('echo first; exit 0');
        const reply = JSON.stringify(before);
        const printed = await box.run([
          ...['/bin/sh', '-c', 'printf "%s\\n" "$0"; sleep 0.2; exit 3', reply],
        ]);
        expect(printed.stdout).toBe(`${reply}\n`);
        expect(printed.exec.exit).toMatchObject({ exitCode: 3, trusted: true });
        const session = await world.edge.exec.sessions.open(box.entry, {}, context());
        const within = { session: session.id };
        const first = await box.run('echo first', within);
        const again = await box.run(`printf '%s\\n' '${JSON.stringify(first)}'; (exit 3)`, within);
        expect(again.exec.exit).toMatchObject({ exitCode: 3, trusted: false });
      }),
  },
  {
    ...{
      id: 7,
      name: 'shell-status-forge',
      expected: "a session's status is untrusted, a command's is its own",
    },
    check: (world) =>
      withBox(world, async (box) => {
        const { exec } = await forgedSession(world, box);
        // The forgery works on the session, which is why its status says that it is no proof.
        expect(exec.exit).toMatchObject({ exitCode: 0, trusted: false });
        const alone = await box.run('false');
        expect(alone.exec.exit).toMatchObject({ exitCode: 1, trusted: true });
      }),
  },
  {
    ...{
      id: 8,
      name: 'bash-replaced',
      expected: 'static programs and files work on without shell and libc',
    },
    later: "the platform's own tools at /.dsec are shown by tests/security/grading.test.ts",
    check: (world) =>
      withBox(world, async (box) => {
        expect((await box.run(['/bin/true'])).exec.exit).toMatchObject({ exitCode: 0 });
        await box.writeFile('/tmp/kept', Buffer.from('kept'));
        const { stdout } = await box.run(
          'find / -xdev \\( -name "ld-linux*" -o -name "libc.so*" -o -name sh -o -name env -o -name true \\)',
        );
        const files = stdout.trim().split('\n');
        expect(files.length).toBeGreaterThan(3);
        for (const path of files) await box.writeFile(path, Buffer.from('not a program'));
        const broken = await box.run(['/bin/true']).catch(() => undefined);
        expect(broken?.exec.exit?.exitCode).not.toBe(0);
        expect((await box.probe('spy')).exec.exit).toMatchObject({ exitCode: 0 });
        expect((await box.readFile('/tmp/kept')).toString()).toBe('kept');
      }),
  },
  {
    ...{ id: 9, name: 'ld-preload', expected: 'files and static programs are unaffected' },
    later: 'that a reward is unaffected is shown by tests/security/grading.test.ts',
    check: (world) =>
      withBox(world, async (box) => {
        const preload = '/etc/ld.so.preload';
        await box.writeFile(preload, Buffer.from('/tmp/none.so\n'));
        await box.writeFile('/etc/environment', Buffer.from('LD_AUDIT=/tmp/none.so\n'));
        await box.writeFile('/etc/profile', Buffer.from('export BASH_ENV=/tmp/x\necho profile\n'));
        // What a linked program says of it shows that it is in force.
        expect((await box.run(['/bin/true'])).stderr).toContain('/tmp/none.so');
        const { stdout, stderr } = await box.probe('ids');
        expect({ stdout, stderr }).toEqual({ stdout: 'uid 0\neuid 0\n', stderr: '' });
        expect((await box.readFile(preload)).toString()).toBe('/tmp/none.so\n');
        expect((await box.run(['/bin/env'])).stdout).not.toMatch(/BASH_ENV|LD_AUDIT|profile/);
      }),
  },
  {
    ...{
      id: 16,
      name: 'raw-scm',
      expected: 'no process of a session ever has a socket of the edge',
    },
    later:
      'raw streams of commands do not exist; when they do, what comes over them is theirs to check',
    check: (world) =>
      withBox(world, async (box) => {
        expect(countOf(runPlain('steal', '1'), 'taken')).toBeGreaterThan(0);
        const descriptors = readdirSync('/proc/self/fd').length;
        const thief = box.probe('steal', '400');
        await moveFiles(world, box);
        const { stdout } = await thief;
        expect(countOf(stdout, 'taken')).toBe(0);
        expect(stdout.split('\n').filter((line) => line.startsWith('seen-'))).toEqual([]);
        await until('as many descriptors as before', () =>
          readdirSync('/proc/self/fd').length <= descriptors + 4 ? true : undefined,
        );
      }),
  },
  {
    ...{ id: 17, name: 'exit-codes', expected: 'every code and every signal, exactly' },
    check: (world) =>
      withBox(world, async (box) => {
        const codes = Array.from({ length: 256 }, (_, code) => code);
        const lane = async (own: number[]) => {
          for (const code of own) {
            const { exec } = await box.run(['/bin/sh', '-c', `exit ${code}`]);
            expect(exec.exit).toMatchObject({ exitCode: code, trusted: true });
          }
        };
        await Promise.all([0, 1, 2, 3].map((n) => lane(codes.filter((code) => code % 4 === n))));
        const { SIGCHLD, SIGCONT, SIGURG, SIGWINCH, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU } =
          constants.signals;
        const gentle = [SIGCHLD, SIGCONT, SIGURG, SIGWINCH, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU];
        for (let signal = 1; signal <= 64; signal += 1) {
          // Two are those of the C library's own threads.
          if (gentle.includes(signal) || signal === 32 || signal === 33) continue;
          const { exec } = await box.run(['/bin/sh', '-c', `kill -${signal} $$; sleep 9`]);
          expect(exec.exit).toMatchObject({ signal, coreDumped: false, oomKilled: false });
        }
        const stopped = await box.run(
          "sh -c 'kill -STOP $$; exit 4' & sleep 0.2; kill -CONT $!; wait $!",
        );
        expect(stopped.exec.exit).toMatchObject({ exitCode: 4 });
      }),
  },
  {
    ...{
      id: 18,
      name: 'double-fork-timeout',
      expected: 'nothing is left; what was written comes back',
    },
    check: (world) =>
      withBox(world, async (box) => {
        expect(leftByTimeout(`${TREE} sleep ${MINUTES}`)).toBeGreaterThan(0);
        const bomb = `while :; do setsid sh -c "sleep ${MINUTES} & sleep ${MINUTES}" & done`;
        const faster = `${TREE} (${bomb}) & exec sleep ${MINUTES}`;
        for (const script of [`${TREE} sleep ${MINUTES}`, faster]) {
          const { exec, stdout } = await box.run(script, { timeoutMs: 1000 });
          expect(stdout).toContain('grown\n');
          expect(exec.exit).toMatchObject({ timedOut: true, oomKilled: false });
          await until('only the agent is left', () =>
            box.host.processes().length === 1 ? true : undefined,
          );
        }
      }),
  },
];

/** Up and down, so that raw streams are open all the time. */
async function moveFiles({ client }: SecurityWorld, box: Box): Promise<void> {
  const params = { sandboxId: box.entry.id };
  for (let round = 0; round < 3; round += 1) {
    const body = (async function* () {
      for (let part = 0; part < 20; part += 1) {
        yield Buffer.alloc(400_000);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    })();
    await client.call(ROUTES.writeFile, { params, query: { path: '/tmp/moved' }, body });
    const reply = await client.call(ROUTES.readFile, { params, query: { path: '/tmp/moved' } });
    for await (const _ of reply.body) await new Promise((resolve) => setImmediate(resolve));
  }
}
