/** Policies of real containers, through `dsec edge` as a process of its own. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type PolicyDocument, ROUTES, type Sandbox, type SandboxCreate } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { createEdgeHost, type EdgeHost, type EdgeProcess, paramsOf } from '../chaos/edge-world.ts';
import { openBackendWorld, openSharedStore, type SharedStore } from './backend-container-world.ts';

const isRoot = process.getuid?.() === 0;

let shared: SharedStore;
let host: EdgeHost;
let edge: EdgeProcess;

compileFirst(join(import.meta.dirname, '../../packages/dsec'));

const NATIVE = new URL('../../native/', import.meta.url).pathname;
const PROBE = join(NATIVE, 'build/hostile_probe');

function fill(root: string): void {
  copyFileSync(PROBE, join(root, 'bin/probe'));
  for (const name of ['opt/answers', 'opt/keys', 'work/tests', 'srv/tools']) {
    mkdirSync(join(root, name), { recursive: true });
    writeFileSync(join(root, name, 'one'), `${name}\n`);
  }
}

async function create(policy: SandboxCreate['policy'], more: SandboxCreate = {}) {
  const body = {
    layers: ['base/small:1.0.0'],
    ...more,
    ...(policy === undefined ? {} : { policy }),
  };
  return edge.client.call(ROUTES.createSandbox, { body });
}

const policyOf = (rest: Partial<PolicyDocument>): PolicyDocument => ({
  ...{ version: 1, extends: 'default' },
  ...rest,
});

async function sh(sandbox: Sandbox, shell: string) {
  const body = { shell, waitMs: 20_000 };
  const done = await edge.client.call(ROUTES.startExec, { params: paramsOf(sandbox), body });
  return { out: done.stdout?.text ?? '', err: done.stderr?.text ?? '', exec: done.exec };
}

/** Whatever of these writes something has got through. */
async function allowed(sandbox: Sandbox, attempts: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const attempt of attempts) {
    const { exec } = await sh(sandbox, `(${attempt}) >/dev/null 2>&1`);
    if (exec.exit?.exitCode === 0) found.push(attempt);
  }
  return found;
}

const stateOf = (sandbox: Sandbox) =>
  edge.client.call(ROUTES.getSandbox, { params: paramsOf(sandbox), query: {} });

const protectionOf = ({ protections }: Sandbox, name: string) =>
  protections.find((protection) => protection.name === name);

const setStage = (sandbox: Sandbox, stage: 'build' | 'solve' | 'grade') =>
  edge.client.call(ROUTES.setSandboxStage, { params: paramsOf(sandbox), body: { stage } });

/** A second name of everything that the policies below speak of, as root makes it inside. */
const READS = (place: string) => [
  `cat ${place}/one`,
  `cat /proc/self/root${place}/one`,
  `ln -s ${place} /tmp/link$$; cat /tmp/link$$/one`,
  `ln ${place}/one /tmp/hard$$ && cat /tmp/hard$$`,
  `cd ${place} && cat one`,
  `mv ${place} /tmp/moved$$ && cat /tmp/moved$$/one`,
  `mv ${place.replace(/\/[^/]*$/, '')} /tmp/up$$ && cat /tmp/up$$/*/one`,
  `cat ${place}/../${place.split('/').at(-1)}/one`,
  `umount ${place} && cat ${place}/one`,
  `cat /proc/1/root${place}/one`,
];

describe.skipIf(!isRoot)('policies of containers (needs root)', () => {
  beforeAll(async () => {
    execFileSync('make', ['-C', NATIVE, '-s', 'build/hostile_probe'], { stdio: 'inherit' });
    shared = await openSharedStore({
      fill,
      programs: ['ln', 'mkdir', 'mv', 'cp', 'umount', 'chmod', 'chown', 'grep'],
    });
    const world = await openBackendWorld(shared);
    await world.backend.close();
    host = createEdgeHost(world);
    edge = await host.start();
  }, 120_000);

  afterAll(async () => {
    await edge?.end('SIGTERM');
    await host?.close();
    shared?.remove();
  });

  it('the default profile costs nothing and is told', async () => {
    const sandbox = await create(undefined);
    expect(protectionOf(sandbox, 'policy-sockets')).toMatchObject({ state: 'enforced' });
    expect(sandbox.stage).toBeUndefined();
    expect(
      await allowed(sandbox, ['cat /opt/answers/one', 'echo x > /opt/answers/one']),
    ).toHaveLength(2);
  });

  it('what is hidden is not read by root inside by any other name', async () => {
    const control = await create('open');
    const attempts = READS('/opt/answers').slice(0, 5);
    expect(await allowed(control, attempts)).toEqual(attempts);
    const files: PolicyDocument['files'] = [{ path: '/opt/answers/**', access: ['hide'] }];
    const sandbox = await create(policyOf({ files }));
    expect(protectionOf(sandbox, 'policy-files')).toMatchObject({ state: 'enforced' });
    const others = ['cat /opt/keys/one'];
    expect(await allowed(sandbox, ['echo x > /opt/answers/new', ...others])).toEqual(others);
    expect(await allowed(sandbox, READS('/opt/answers'))).toEqual([]);
    const query = { path: '/opt/answers/one' };
    const read = edge.client.call(ROUTES.readFile, { params: paramsOf(sandbox), query });
    await expect(read).rejects.toMatchObject({ code: 'not-found' });
  });

  it('what may only be read is not written, and what may not run does not', async () => {
    const files: PolicyDocument['files'] = [
      { path: '/opt/keys/**', access: ['read'] },
      { path: '/srv/tools/**', access: ['read', 'exec'] },
    ];
    const sandbox = await create(policyOf({ files }));
    const reads = ['cat /opt/keys/one', 'cat /srv/tools/one'];
    expect(
      await allowed(sandbox, [
        ...reads,
        'echo x > /opt/keys/one',
        'echo x > /opt/keys/new',
        'rm /opt/keys/one',
        'mv /opt/keys /opt/other && echo x > /opt/other/one',
        'echo x > /srv/tools/one',
        'cp /bin/true /opt/keys/true; /opt/keys/true',
      ]),
    ).toEqual(reads);
  });

  it('locked: files are changed where work is done, and nowhere else', async () => {
    const sandbox = await create('locked');
    const fine = ['echo x > /work/tests/new', 'echo x > /tmp/new', 'echo x > /dev/null', 'ls /opt'];
    expect(
      await allowed(sandbox, [
        ...fine,
        'echo x > /opt/keys/one',
        'echo x > /etc/passwd',
        'rm /opt/answers/one',
        'ln -s / /tmp/all; echo x > /tmp/all/etc/passwd',
        'mv /work/tests/one /opt/one',
      ]),
    ).toEqual(fine);
    expect((await sh(sandbox, 'probe sockets')).out).toContain('socket-route 97');
    const { out } = await sh(sandbox, 'grep CapBnd /proc/self/status');
    expect(out).toBe('CapBnd:\t00000000000000fb\n');
    const write = edge.client.call(ROUTES.writeFile, {
      params: paramsOf(sandbox),
      query: { path: '/etc/passwd' },
      body: Buffer.from('x'),
    });
    await expect(write).rejects.toMatchObject({ code: 'permission-denied' });
  });

  it('capabilities, sockets, system calls and devices are taken away', async () => {
    const sandbox = await create(
      policyOf({
        capabilities: ['dac_override'],
        sockets: [{ family: 'unix', types: ['stream'] }],
        syscalls: [
          { call: 'mkdir', error: 'ENOSYS' },
          { call: 'kill', when: [{ argument: 1, equals: 9 }] },
        ],
        devices: ['null', 'urandom'],
      }),
    );
    const { out } = await sh(sandbox, 'grep -E "Cap(Prm|Bnd)" /proc/self/status; echo $$');
    expect(out.match(/0000000000000002/g)).toHaveLength(2);
    const fine = ['cat /dev/null', 'kill -0 $$'];
    const denied = [
      'mkdir /tmp/d',
      'sleep 100 & kill -9 $!',
      'dd if=/dev/zero bs=1 count=1 | tr "\\0" x | grep x',
      'touch /tmp/t && chown 5:5 /tmp/t',
    ];
    expect(await allowed(sandbox, [...fine, ...denied])).toEqual(fine);
    const open = await create('open');
    expect(await allowed(open, denied)).toEqual(denied);
    const sockets = async (where: Sandbox) =>
      (await sh(where, 'probe sockets')).out.match(/^socket-(unix|tcp|route) \d+$/gm);
    expect(await sockets(sandbox)).toEqual(['socket-unix 0', 'socket-tcp 97', 'socket-route 97']);
    expect(await sockets(open)).toEqual(['socket-unix 0', 'socket-tcp 0', 'socket-route 0']);
  });

  it('what cannot be enforced is an error unless it may be let be, and what is required always', async () => {
    const files: PolicyDocument['files'] = [{ path: '/**/conftest.py', access: ['read'] }];
    await expect(create(policyOf({ files }))).rejects.toMatchObject({ code: 'unsupported' });
    const more = { allowDegraded: true };
    const degraded = await create(policyOf({ files }), more);
    expect(protectionOf(degraded, 'policy-files')?.state).not.toBe('enforced');
    await expect(create(policyOf({ files, require: ['files'] }), more)).rejects.toMatchObject({
      code: 'unsupported',
    });
    const asked = { ...more, requireProtections: ['policy-files'] };
    await expect(create(policyOf({ files }), asked)).rejects.toMatchObject({ code: 'unsupported' });
    await expect(create('nobody-knows')).rejects.toMatchObject({ code: 'invalid-argument' });
    const link = policyOf({ files: [{ path: '/usr/opt/**', access: ['hide'] }] });
    await expect(create(link)).rejects.toBeInstanceOf(DsecError);
  });

  const STAGED = policyOf({
    stages: {
      build: {},
      solve: {
        files: [{ path: '/opt/answers/**', access: ['hide'] }],
        syscalls: [{ call: 'fchmodat' }],
      },
      grade: { files: [{ path: '/opt/keys/**', access: ['hide'] }] },
    },
  });

  it('a switch that hides ends whoever could have it open, and no later one finds a way', async () => {
    const sandbox = await create(STAGED, { stage: 'build' });
    const params = paramsOf(sandbox);
    const session = await edge.client.call(ROUTES.openSession, { params, body: {} });
    const holder = await edge.client.call(ROUTES.startExec, {
      params,
      body: {
        shell: 'exec 7</opt/answers/one; cd /opt/answers; trap "" TERM; sleep 1000; cat <&7',
      },
    });
    await sh(
      sandbox,
      'setsid sh -c "cd /opt/answers; sleep 1000; cat one > /tmp/leak" >/dev/null 2>&1 &',
    );
    const switched = await setStage(sandbox, 'solve');
    expect(switched).toMatchObject({ stage: 'solve', state: 'running' });
    const { exec } = await edge.client
      .call(ROUTES.getExec, {
        params: { ...params, execId: holder.exec.id },
        query: { waitMs: 5000 },
      })
      .then((found) => ({ exec: found }));
    expect(exec.exit).toMatchObject({ signal: 9, endedByPolicy: true });
    const { sessions } = await edge.client.call(ROUTES.listSessions, { params, query: {} });
    expect(sessions.find(({ id }) => id === session.id)).toMatchObject({ open: false });
    expect(await allowed(sandbox, ['chmod 700 /tmp', 'cat /opt/keys/one'])).toEqual([
      'cat /opt/keys/one',
    ]);
    expect(await allowed(sandbox, READS('/opt/answers'))).toEqual([]);
    expect((await sh(sandbox, 'cat /proc/[0-9]*/comm')).out).not.toContain('sleep');
    expect(await setStage(sandbox, 'solve')).toMatchObject({ stage: 'solve' });
  });

  it('a switch that allows more needs its own right, and what it gives back is there', async () => {
    const sandbox = await create(STAGED, { stage: 'solve' });
    expect(await allowed(sandbox, READS('/opt/answers'))).toEqual([]);
    await expect(setStage(sandbox, 'build')).rejects.toMatchObject({
      code: 'permission-denied',
      details: { scope: 'policies:loosen' },
    });
    await expect(setStage(sandbox, 'grade')).rejects.toMatchObject({ code: 'permission-denied' });
    const body = { stage: 'grade' as const };
    const params = paramsOf(sandbox);
    const loosened = await edge.client.call(ROUTES.loosenSandboxStage, { params, body });
    expect(loosened).toMatchObject({ stage: 'grade' });
    const attempts = ['cat /opt/answers/one', 'chmod 700 /tmp', 'cat /opt/keys/one'];
    expect(await allowed(sandbox, attempts)).toEqual(attempts.slice(0, 2));
  });

  it.each(['stage.after-intent', 'stage.after-quiesce', 'stage.after-mounts', 'stage.after-rules'])(
    'an edge that dies at %s leaves a switch that the next one ends',
    async (crashPoint) => {
      const sandbox = await create(STAGED, { stage: 'build' });
      await edge.end('SIGTERM');
      edge = await host.start({ crashPoint });
      await expect(setStage(sandbox, 'solve')).rejects.toThrow();
      expect(await edge.ended).toBe('SIGKILL');
      edge = await host.start();
      expect(await allowed(sandbox, READS('/opt/answers'))).toEqual([]);
      expect(await stateOf(sandbox)).toMatchObject({ state: 'running', stage: 'solve' });
      // Nothing of an attempt is left on top of another one.
      const { out } = await sh(sandbox, 'grep -c " /opt/answers " /proc/self/mountinfo');
      expect(out).toBe('1\n');
      await edge.client.call(ROUTES.stopSandbox, { params: paramsOf(sandbox) });
    },
  );

  it('a launcher that dies meanwhile is waited for', async () => {
    const sandbox = await create(STAGED, { stage: 'build' });
    for (const stage of ['solve', 'build', 'grade', 'solve'] as const) {
      const params = paramsOf(sandbox);
      const switching = edge.client.call(ROUTES.loosenSandboxStage, { params, body: { stage } });
      host.killLauncher();
      expect(await switching).toMatchObject({ stage });
      const hidden =
        stage === 'solve' ? '/opt/answers' : stage === 'grade' ? '/opt/keys' : undefined;
      if (hidden !== undefined) expect(await allowed(sandbox, READS(hidden))).toEqual([]);
    }
    // Whatever was started last is there.
    await create('open');
  }, 60_000);

  it('an agent that dies meanwhile ends the sandbox', async () => {
    const sandbox = await create(STAGED, { stage: 'build' });
    const switching = setStage(sandbox, 'solve').catch((thrown) => thrown);
    host.killAgent(sandbox.id as never);
    await switching;
    await expect
      .poll(async () => (await stateOf(sandbox)).state, { timeout: 10_000 })
      .toBe('failed');
  });
});
