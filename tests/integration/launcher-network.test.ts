/** Links of sandboxes to the router, seen from both ends; what the router alone keeps apart. */
import { type ChildProcess, execFile, execFileSync, spawn } from 'node:child_process';
import { statSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { compileSeccomp, type ObjectKey } from '@dsec/backend-container';
import type { SpawnFields } from '@dsec/protocol';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { canMount, rerunInPrivateNamespace } from '../../packages/layers/test/support/mounts.ts';
import {
  ATTRIBUTES,
  buildNative,
  IN_LAB,
  LAUNCHER,
  type LauncherWorld,
  linksOf,
  mountLayers,
  openLauncherWorld,
  type RunningLauncher,
  type TestLayer,
} from './launcher-world.ts';

rerunInPrivateNamespace(import.meta.filename, 'integration');

const GATEWAY = 0xa9_fe_4d_01;
const FIRST_ADDRESS = 0x64_60_00_02;
const PORT = '4053';
const AGENT = join(import.meta.dirname, 'launcher-network.py');
const run = promisify(execFile);

const dotted = (address: number) =>
  [24, 16, 8, 0].map((bits) => (address >>> bits) & 255).join('.');
const hostEnd = (address: number) => `v${address.toString(16).padStart(8, '0')}`;
const gateway = dotted(GATEWAY);

describe.runIf(canMount)('links of sandboxes (needs root)', () => {
  let world: LauncherWorld;
  let base: TestLayer;
  let launcher: RunningLauncher;
  const servers: ChildProcess[] = [];

  beforeAll(buildNative);
  beforeEach(async () => {
    world = openLauncherWorld({ seccomp: compileSeccomp() });
    base = world.buildLayer((builder) => builder.directory('home', ATTRIBUTES));
  });
  afterEach(async () => {
    for (const server of servers.splice(0)) server.kill();
    await world.close();
  });

  const keyOf = (slot: number): ObjectKey => ({ name: `box-${slot}`, generation: 1 });
  const addressOf = (slot: number) => FIRST_ADDRESS + slot;
  const router = () => join(world.stateRoot, 'run/router.net');
  const namespaceOf = (pid: number) => `/proc/${pid}/ns/net`;

  /** With a link unless `address` is null. */
  function specOf(slot: number, address: number | null = addressOf(slot)): SpawnFields {
    const change = (spec: SpawnFields): SpawnFields =>
      address === null ? spec : { ...spec, link: { address, gateway: GATEWAY } };
    return world.spec(keyOf(slot), { layers: [base], slot, change });
  }

  async function begin(crashPoint?: string): Promise<void> {
    launcher = await world.start(crashPoint);
    await mountLayers(launcher.client, [base]);
  }

  async function make(slot: number, address?: number | null): Promise<string> {
    const { pid } = await launcher.client.spawn(specOf(slot, address));
    return namespaceOf(pid);
  }

  async function remove(slot: number): Promise<void> {
    await launcher.client.kill(keyOf(slot));
    await launcher.client.release(keyOf(slot));
  }

  async function inside(namespace: string, ...words: string[]): Promise<string> {
    const { stdout } = await run('nsenter', [`--net=${namespace}`, 'python3', AGENT, ...words]);
    return stdout.trim();
  }

  const set = (namespace: string, name: string, value: string) =>
    execFileSync('nsenter', [
      ...[`--net=${namespace}`, 'sh', '-c'],
      `echo ${value} > /proc/sys/net/ipv4/${name}`,
    ]);

  /** Answers TCP with the address of the peer, and gives the sources of the datagrams that came. */
  async function serve(namespace: string, address: string): Promise<readonly string[]> {
    const words = [`--net=${namespace}`, 'python3', AGENT, 'serve', address, PORT];
    const server = spawn('nsenter', words, { stdio: ['pipe', 'pipe', 'inherit'] });
    servers.push(server);
    const sources: string[] = [];
    await new Promise<void>((resolve) => {
      createInterface(server.stdout).on('line', (line) => {
        if (line === 'ready') resolve();
        else sources.push(line);
      });
    });
    return sources;
  }

  it('a sandbox has one address, and the gateway answers it', async () => {
    await begin();
    const linked = await make(1);
    const alone = await make(2, null);
    await serve(router(), gateway);
    expect(await inside(linked, 'devices')).toBe('eth0 lo');
    expect(await inside(linked, 'ping', gateway)).toBe('pong');
    expect(await inside(linked, 'tcp', gateway, PORT)).toBe(dotted(addressOf(1)));
    // Back, as the proxies of the node would.
    await serve(linked, '0.0.0.0');
    expect(await inside(router(), 'tcp', dotted(addressOf(1)), PORT)).toBe(gateway);
    expect(await inside(alone, 'devices')).toBe('lo');
    expect(await inside(alone, 'tcp', gateway, PORT)).toBe('ENETUNREACH');
  });

  it('its own loopback has IPv6, the link has not', async () => {
    await begin();
    const linked = await make(1);
    const { stdout } = await run('nsenter', [`--net=${linked}`, 'cat', '/proc/net/if_inet6']);
    expect(stdout).not.toContain('eth0');
    const { stdout: outside } = await run('nsenter', [
      ...[`--net=${router()}`, 'cat', '/proc/net/if_inet6'],
    ]);
    expect(outside).not.toMatch(/\bv[\da-f]{8}/);
  });

  it('the router alone: no sandbox reaches another one', async () => {
    await begin();
    const [one, other] = [await make(1), await make(2)];
    await serve(other, '0.0.0.0');
    const neighbour = dotted(addressOf(2));
    expect(await inside(one, 'tcp', neighbour, PORT)).toBe('timeout');
    expect(await inside(one, 'ping', neighbour)).toBe('timeout');
    // Control: it is the forwarding that is off.
    set(router(), 'ip_forward', '1');
    expect(await inside(one, 'tcp', neighbour, PORT)).toBe(dotted(addressOf(1)));
  });

  it('the router alone: no sandbox reaches the host', async () => {
    await begin();
    const one = await make(1);
    const own = Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .filter(({ family, internal }) => family === 'IPv4' && !internal)
      .map(({ address }) => address);
    await serve('/proc/self/ns/net', '0.0.0.0');
    for (const address of ['127.0.0.1', ...own]) {
      expect(await inside('/proc/self/ns/net', 'tcp', address, PORT)).not.toBe('timeout');
      expect(await inside(one, 'tcp', address, PORT)).toMatch(/timeout|ECONNREFUSED|EHOSTUNREACH/);
    }
    // Nor is there a way for it if the router forwarded.
    set(router(), 'ip_forward', '1');
    for (const address of own) {
      expect(await inside(one, 'tcp', address, PORT)).toMatch(/timeout|ENETUNREACH|EHOSTUNREACH/);
    }
  });

  it('the router alone: a source that is not its own is dropped', async () => {
    await begin();
    const one = await make(1);
    await make(2);
    const sources = await serve(router(), gateway);
    const send = (source: string) => inside(one, 'udp', source, gateway, PORT);
    const [own, others] = [dotted(addressOf(1)), dotted(addressOf(2))];
    for (const source of [others, '127.0.0.1', '8.8.8.8', gateway]) await send(source);
    await send(own);
    await expect.poll(() => sources).toEqual([own]);
    // Control: it is the check of sources.
    set(router(), 'conf/all/rp_filter', '0');
    set(router(), `conf/${hostEnd(addressOf(1))}/rp_filter`, '0');
    await send(others);
    await expect.poll(() => sources).toEqual([own, others]);
  });

  it('what needs the packet filter: every port of the gateway answers', async () => {
    await begin();
    const one = await make(1);
    expect(await inside(one, 'tcp', gateway, '9')).toBe('ECONNREFUSED');
  });

  it('an address is nobody else’s until its sandbox is released', async () => {
    await begin();
    const first = await make(1);
    await expect(launcher.client.spawn(specOf(2, addressOf(1)))).rejects.toMatchObject({
      ...{ code: 'conflict', details: { step: 'link' } },
    });
    await serve(router(), gateway);
    expect(await inside(first, 'tcp', gateway, PORT)).toBe(dotted(addressOf(1)));
    await remove(1);
    expect(linksOf(world.stateRoot)).toEqual([]);
    const second = await make(2, addressOf(1));
    expect(await inside(second, 'tcp', gateway, PORT)).toBe(dotted(addressOf(1)));
    await remove(2);
    expect(world.leftovers()).toEqual([]);
  });

  it('refuses what is no address of a host', async () => {
    await begin();
    for (const address of [0, 0x7f_00_00_01, 0xe0_00_00_01, 0xff_ff_ff_ff, GATEWAY]) {
      await expect(launcher.client.spawn(specOf(1, address))).rejects.toMatchObject({
        ...{ code: 'invalid-argument', details: { step: 'spec:link' } },
      });
    }
    await expect(launcher.client.makeRouter(0x7f_00_00_01)).rejects.toMatchObject({
      code: 'invalid-argument',
    });
  });

  it('the next launcher has the same router, and releases by name', async () => {
    await begin();
    await launcher.client.makeRouter(GATEWAY);
    const { ino } = statSync(router());
    const one = await make(1);
    await launcher.kill();
    await begin();
    await launcher.client.makeRouter(GATEWAY);
    expect(statSync(router()).ino).toBe(ino);
    const two = await make(2);
    await serve(router(), gateway);
    expect(await inside(one, 'tcp', gateway, PORT)).toBe(dotted(addressOf(1)));
    expect(await inside(two, 'tcp', gateway, PORT)).toBe(dotted(addressOf(2)));
    await Promise.all([remove(1), remove(2)]);
    expect(world.leftovers()).toEqual([]);
    launcher.process.kill('SIGTERM');
    await launcher.ended;
    expect(() => statSync(router())).toThrow('ENOENT');
  });

  it('leaves no link that the next one cannot remove, wherever it dies', async () => {
    const points = execFileSync(LAUNCHER, ['--crash-points'], { encoding: 'utf8' })
      .trim()
      .split('\n')
      .filter((point) => /^(router|link|spawn|release)-/.test(point))
      // The router is made once.
      .sort((one, other) => +other.startsWith('router-') - +one.startsWith('router-'));
    for (const point of points) {
      await begin(point);
      const life = make(1).then(() => remove(1));
      await expect(life, point).rejects.toMatchObject({ code: 'unavailable' });
      await launcher.ended;
      await begin();
      await remove(1);
      expect(world.leftovers(), point).toEqual([]);
      // The address serves again at once.
      await make(1);
      await remove(1);
      expect(world.leftovers(), point).toEqual([]);
      await launcher.kill();
    }
  }, 120_000);

  it('many at a time', async () => {
    await begin();
    const slots = Array.from({ length: IN_LAB ? 8 : 64 }, (_, slot) => slot + 1);
    const namespaces = await Promise.all(slots.map((slot) => make(slot)));
    await serve(router(), gateway);
    for (const [i, slot] of slots.entries()) {
      const answer = await inside(namespaces[i] ?? '', 'tcp', gateway, PORT);
      expect(answer).toBe(dotted(addressOf(slot)));
    }
    await Promise.all(slots.map(remove));
    expect(world.leftovers()).toEqual([]);
  }, 120_000);
});
