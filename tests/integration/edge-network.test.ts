/** Rules of sandboxes on real containers: what they open, and that nothing else is open. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import { join } from 'node:path';
import { bpfRefusal } from '@dsec/linux';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { canMount, rerunInPrivateNamespace } from '../../packages/layers/test/support/mounts.ts';
import {
  connect,
  get,
  lookUp,
  MIRROR,
  MIRROR_RULES,
  MIRROR_TEXT,
  type NetworkWorld,
  openNetworkWorld,
} from '../security/network-world.ts';
import { type Box, context } from '../security/security-world.ts';
import { until } from './launcher-world.ts';

rerunInPrivateNamespace(import.meta.filename, 'integration');

const GATEWAY = '169.254.77.1';
const hasBpf = bpfRefusal() === undefined;

describe.runIf(canMount)('networks of containers (needs root)', () => {
  let net: NetworkWorld;
  let box: Box;

  beforeAll(async () => {
    net = await openNetworkWorld();
    box = await net.make();
  }, 120_000);
  afterAll(async () => {
    const root = net?.world.node.stateRoot;
    expect(await net?.close()).toEqual([]);
    expect(existsSync(join(root, 'run/bpf'))).toBe(false);
    expect(readFileSync('/proc/self/mounts', 'utf8')).not.toContain(`${root}/run/bpf`);
  });

  const lifecycle = () => net.world.edge.lifecycle;
  const protection = (of: Box) =>
    of.entry.runtime?.protections.find(({ name }) => name === 'packet-filter')?.state;

  it('an allowed name is reached through the proxies', async () => {
    expect(await lookUp(box, MIRROR)).toBe(GATEWAY);
    expect(await get(box, MIRROR)).toContain(MIRROR_TEXT);
    expect(protection(box)).toBe(hasBpf ? 'enforced' : 'absent');
  });

  it('a name that is not allowed does not exist, and is an event', async () => {
    expect(await lookUp(box, 'elsewhere.dsec-tests.net')).toBe('');
    await until('the denial is told', async () => {
      const events = await net.events('denied');
      return events.find((event) => 'target' in event && event.target?.startsWith('elsewhere'));
    });
    // Nor by the address of the gateway, when the request names another host.
    const other = 'GET / HTTP/1.1\\r\\nHost: elsewhere.dsec-tests.net\\r\\n\\r\\n';
    const { stdout } = await box.run([
      ...['/bin/bash', '-c'],
      `exec 3<>/dev/tcp/${GATEWAY}/80 && printf '${other}' >&3 && cat <&3`,
    ]);
    expect(stdout).toContain('HTTP/1.1 403');
  });

  it('no neighbour, host, other port of the gateway or metadata answers', async () => {
    const neighbour = await net.make();
    const { address, port } = net.host;
    const targets: [string, number][] = [
      ...[neighbour.entry.network?.address ?? '', GATEWAY].map((at): [string, number] => [at, 22]),
      ...[[address, port] as [string, number], ['169.254.169.254', 80] as [string, number]],
      ...[[MIRROR_TARGET, 80] as [string, number]],
    ];
    for (const [target, at] of targets) {
      expect(isIPv4(target)).toBe(true);
      const outcome = await connect(box, target, at);
      expect(outcome, `${target} port ${at}`).not.toBe('open');
      // The mirror's address is loopback, and so the sandbox's own.
      const word = target === MIRROR_TARGET ? 'Connection refused' : 'Operation not permitted';
      if (hasBpf) expect(outcome, target).toBe(`refused: ${word}`);
    }
    expect(net.host.connections).toBe(0);
    // The control: the host's server answers those who may reach it.
    execFileSync('bash', ['-c', `exec 3<>/dev/tcp/${address}/${port}`]);
    await until('the host was reached', () => net.host.connections || undefined);
    await neighbour.stop();
  });

  it('rules are replaced by the version that is replaced, and what they shut is cut', async () => {
    const own = await net.make();
    const request = `GET /slow HTTP/1.1\\r\\nHost: ${MIRROR}\\r\\n\\r\\n`;
    const slow = `exec 3<>/dev/tcp/${MIRROR}/80 && printf '${request}' >&3; cat <&3; echo ended`;
    const flow = await own.start(['/bin/bash', '-c', slow], 'tick');
    const before = own.entry.network?.version ?? 0;
    await lifecycle().updateNetwork(own.entry, { version: before, rules: [] }, context());
    await until('the flow has ended', async () =>
      (await own.output(flow)).includes('ended') ? true : undefined,
    );
    expect(await lookUp(own, MIRROR)).toBe('');
    const again = { version: before, rules: [...MIRROR_RULES] };
    await expect(lifecycle().updateNetwork(own.entry, again, context())).rejects.toMatchObject({
      code: 'conflict',
    });
    await lifecycle().updateNetwork(own.entry, { ...again, version: before + 1 }, context());
    expect(await get(own, MIRROR)).toContain(MIRROR_TEXT);
    await own.stop();
  });

  it('rules are in force again after the edge and the launcher were started anew', async () => {
    const shut = await net.make();
    const { version } = shut.entry.network ?? { version: 0 };
    await lifecycle().updateNetwork(shut.entry, { version, rules: [] }, context());
    await net.world.reopen(async () => {
      await net.world.node.killLauncher();
      await net.world.node.startLauncher();
    });
    expect(await get(box, MIRROR)).toContain(MIRROR_TEXT);
    expect(await lookUp(shut, MIRROR)).toBe('');
    if (hasBpf) expect(await connect(shut, GATEWAY, 80)).toContain('refused');
    await shut.stop();
  });

  it('the same without rules: a loopback alone', async () => {
    const alone = await net.world.make();
    expect(alone.entry.network).toBeUndefined();
    expect(await connect(alone, GATEWAY, 80)).toMatch(/^refused/);
    await alone.stop();
  });
});

/** Where the mirror itself listens: the host's loopback, which is not that of a sandbox. */
const MIRROR_TARGET = '127.77.0.1';
