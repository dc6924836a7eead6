/** What the agent takes from those whom it starts, as the host says. */
import { LANDLOCK_BITS } from '@dsec/policy';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Aether, type AetherLink, run, startAether, until } from './aether-peer.ts';

const READ = LANDLOCK_BITS.readFile | LANDLOCK_BITS.readDirectory | LANDLOCK_BITS.execute;
const WRITE = LANDLOCK_BITS.writeFile | LANDLOCK_BITS.makeFile | LANDLOCK_BITS.removeFile;
const ALL = (1 << 15) - 1;
const EVERYTHING = 2 ** 41 - 1;
const NET_BIND_SERVICE = 2 ** 10;

/** Denies one system call by its number with an errno; everything else is allowed. */
function denial(number: number, errno: number): Uint8Array {
  const code = [
    [0x20, 0, 0, 0],
    [0x15, 0, 1, number],
    [0x06, 0, 0, 0x5_0000 | errno],
    [0x06, 0, 0, 0x7fff_0000],
  ];
  const bytes = Buffer.alloc(8 * code.length);
  for (const [index, [opcode = 0, yes = 0, no = 0, value = 0]] of code.entries()) {
    bytes.writeUInt16LE(opcode, 8 * index);
    bytes.writeUInt8(yes, 8 * index + 2);
    bytes.writeUInt8(no, 8 * index + 3);
    bytes.writeUInt32LE(value, 8 * index + 4);
  }
  return bytes;
}

const SYS_MKDIR = process.arch === 'x64' ? 83 : 34;
const none = { capabilities: EVERYTHING, handledAccess: 0, trees: [] };

describe('rules of sessions', () => {
  let aether: Aether;
  let link: AetherLink;
  beforeAll(async () => {
    aether = await startAether({ pidNamespace: true, sessions: true });
    link = await aether.connect();
  });
  afterAll(() => aether.stop());

  test('capabilities are those that the host leaves, for root and in the bounding set', async () => {
    const caps = async () => (await run(link, 'grep -E "Cap(Prm|Bnd)" /proc/self/status')).stdout;
    const before = (await caps()).toString();
    expect(before).toContain('CapBnd:\t00000000800005fb');
    await link.ask('session-rules', { ...none, capabilities: EVERYTHING - NET_BIND_SERVICE });
    expect((await caps()).toString()).toBe(before.replaceAll('800005fb', '800001fb'));
    await link.ask('session-rules', none);
    expect((await caps()).toString()).toBe(before);
  });

  test('what no tree grants is denied, to commands, sessions and files alike', async () => {
    const directory = (await run(link, 'mktemp -d')).stdout.toString().trim();
    await run(link, `mkdir ${directory}/in; ln -s / ${directory}/all; echo x > ${directory}/f`);
    const trees = [
      { path: Buffer.from('/'), access: READ },
      { path: Buffer.from(`${directory}/in`), access: ALL },
      // Through a link nothing is granted, and what is not there does not matter.
      { path: Buffer.from(`${directory}/all`), access: ALL },
      { path: Buffer.from('/not/there'), access: ALL },
      { path: Buffer.from('/dev/null'), access: ALL },
    ];
    await link.ask('session-rules', { ...none, handledAccess: ALL, trees });
    const answer = await run(
      link,
      `cat ${directory}/f; echo y > ${directory}/in/f && echo in; echo y > ${directory}/f || echo out`,
    );
    expect(answer.stdout.toString()).toBe('x\nin\nout\n');
    const write = { createParents: false, exclusive: false, path: Buffer.from(`${directory}/g`) };
    const stream = link.open();
    stream.send('file-write', { offset: 0, fields: write });
    stream.send('stdin', { offset: 0, end: true, data: new Uint8Array(0) });
    const refused = await stream.next();
    expect(refused).toMatchObject({ type: 'error', fields: { code: 'permission-denied' } });
    await link.ask('session-open', { sessionId: 'rules', argv: [Buffer.from('/bin/sh')], env: [] });
    const inside = await run(link, `echo y > ${directory}/f || echo out`, { sessionId: 'rules' });
    expect(inside.stdout.toString()).toBe('out\n');
    await link.ask('session-rules', none);
    expect((await run(link, `echo z > ${directory}/f; rm -r ${directory}`)).exitCode).toBe(0);
  });

  test('a system call is denied with the errno of the program', async () => {
    await link.ask('session-rules', { ...none, seccomp: denial(SYS_MKDIR, 38) });
    const text = (await run(link, 'mkdir /tmp/never')).stderr.toString();
    expect(text).toContain('Function not implemented');
    await link.ask('session-rules', none);
  });

  test('half an instruction is refused, and the rules before it stay', async () => {
    await link.ask('session-rules', { ...none, handledAccess: WRITE });
    const asked = link.ask('session-rules', { ...none, seccomp: new Uint8Array(12) });
    await expect(asked).rejects.toMatchObject({ code: 'invalid-argument' });
    expect((await run(link, 'echo x > /tmp/never')).exitCode).not.toBe(0);
    await link.ask('session-rules', none);
  });

  test('a quiesce ends everything that runs, and nothing starts until there are rules', async () => {
    await link.ask('session-open', { sessionId: 'shell', argv: [Buffer.from('/bin/sh')], env: [] });
    await run(link, '(setsid sleep 1000 >/dev/null 2>&1 &) ; setsid sh -c "sleep 1001" &', {
      sessionId: 'shell',
    });
    const running = run(link, 'trap "" TERM INT HUP; sleep 1002; sleep 1003');
    const watched = link.ask('session-watch', { sessionId: 'shell' });
    await until(async () => {
      const { stdout } = await run(link, 'ls /proc | grep -c "^[0-9]"');
      return Number(stdout.toString()) > 8;
    }, 'the processes');
    expect((await link.ask('quiesce', {})).type).toBe('done');
    expect(await running).toMatchObject({ signal: 9, endedByPolicy: true });
    expect((await watched).type).toBe('done');
    for (const request of [
      () => run(link, 'true'),
      () => link.ask('session-open', { sessionId: 'late', argv: undefined, env: [] } as never),
      () => link.ask('file-stat', { path: Buffer.from('/'), followSymlinks: false }),
    ]) {
      await expect(request()).rejects.toMatchObject({ code: 'unavailable' });
    }
    await link.ask('session-rules', none);
    const left = await run(link, 'cat /proc/[0-9]*/comm | sort | uniq -c');
    expect(left.stdout.toString()).not.toContain('sleep');
    expect([left.exitCode, left.endedByPolicy]).toEqual([0, undefined]);
  });
});
