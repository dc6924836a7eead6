/** What a sandbox with a network may not do with it. */
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import { asDsecError, systemClock } from '@dsec/std';
import { expect } from 'vitest';
import { until } from '../integration/launcher-world.ts';
import {
  connect,
  get,
  lookUp,
  MIRROR,
  MIRROR_RULES,
  MIRROR_TEXT,
  type NetworkWorld,
  REBOUND,
} from './network-world.ts';
import type { Row } from './rows.ts';
import { type Box, context } from './security-world.ts';

const GATEWAY = '169.254.77.1';
const DNS = { a: 1, null: 10, txt: 16, aaaa: 28, svcb: 64, https: 65, axfr: 252, any: 255 };
const CODES = { ok: 0, noSuchName: 3, refused: 5 };

async function withNetworked<T>(
  network: NetworkWorld,
  work: (box: Box) => Promise<T>,
  rules = MIRROR_RULES,
): Promise<T> {
  const box = await network.make(rules);
  try {
    return await work(box);
  } finally {
    await box.stop();
  }
}

function queryOf(name: string, type: number): Buffer {
  const labels = name.split('.').map((label) => `${String.fromCharCode(label.length)}${label}`);
  const head = Buffer.from('123401000001000000000000', 'hex');
  const tail = Buffer.from([0, 0, type, 0, 1]);
  return Buffer.concat([head, Buffer.from(labels.join(''), 'latin1'), tail]);
}

/** What the node's DNS proxy answers to a program of the sandbox; empty: nothing. */
async function ask(box: Box, query: Buffer): Promise<Buffer> {
  await box.writeFile('/tmp/query', query);
  const script =
    `rm -f /tmp/answer; exec 3<>/dev/udp/${GATEWAY}/53 && cat /tmp/query >&3 && ` +
    'dd of=/tmp/answer bs=4096 count=1 <&3';
  await box.run(['/bin/bash', '-c', script], { timeoutMs: 2_000 });
  return box.readFile('/tmp/answer').catch(() => Buffer.alloc(0));
}

async function askPlainly(port: number, query: Buffer): Promise<Buffer> {
  const socket = createSocket('udp4');
  socket.send(query, port, '127.0.0.1');
  const [answer] = (await once(socket, 'message')) as [Buffer];
  socket.close();
  return answer;
}

const codeOf = (answer: Buffer) => (answer.length < 12 ? -1 : answer.readUInt16BE(2) & 15);

async function expectTypesRefused(network: NetworkWorld): Promise<void> {
  // The control: another name server tells text by the same query.
  const plain = await askPlainly(network.nameServer.port, queryOf(MIRROR, DNS.txt));
  expect(plain.toString('latin1')).toContain('word');
  const asked = network.nameServer.queries;
  await withNetworked(network, async (box) => {
    const answered = await ask(box, queryOf(MIRROR, DNS.a));
    expect(codeOf(answered)).toBe(CODES.ok);
    expect([...answered.subarray(-4)].join('.')).toBe(GATEWAY);
    for (const type of [DNS.txt, DNS.null, DNS.any, DNS.https, DNS.svcb, DNS.axfr]) {
      expect(codeOf(await ask(box, queryOf(MIRROR, type))), `type ${type}`).toBe(CODES.refused);
    }
    expect((await ask(box, queryOf(MIRROR, DNS.aaaa))).readUInt16BE(6)).toBe(0);
    const long = `${'x'.repeat(63)}.${'y'.repeat(63)}.dsec-tests.net`;
    expect(codeOf(await ask(box, queryOf(long, DNS.a)))).toBe(CODES.noSuchName);
    await ask(box, queryOf(MIRROR, DNS.a));
    // A thousand at once: most of them are dropped, and that is told.
    const flood = `exec 3<>/dev/udp/${GATEWAY}/53; for i in $(seq 1000); do cat /tmp/query >&3; done`;
    await box.run(['/bin/bash', '-c', flood]);
    await until('the flood is told', async () =>
      (await network.events('denied')).some(
        (event) => event.type === 'denied' && event.reason === 'rate',
      )
        ? true
        : undefined,
    );
  });
  expect(network.nameServer.queries).toBe(asked);
}

async function expectNeverRebound(network: NetworkWorld): Promise<void> {
  const rules = [{ kind: 'domain', target: REBOUND }] as const;
  const { nameServer, host } = network;
  // The control: a client that believes the name server gets there, as the mirror's own rule does.
  const plain = await askPlainly(nameServer.port, queryOf(REBOUND, DNS.a));
  expect([...plain.subarray(-4)].join('.')).toBe('127.77.0.1');
  const before = network.mirror.requests;
  await withNetworked(
    network,
    async (box) => {
      for (const answer of [
        '127.77.0.1',
        '169.254.169.254',
        '10.1.2.3',
        '100.96.0.2',
        host.address,
      ]) {
        nameServer.answer = answer;
        expect(await lookUp(box, REBOUND)).toBe(GATEWAY);
        expect(await get(box, REBOUND), answer).not.toContain(MIRROR_TEXT);
      }
    },
    rules as never,
  );
  nameServer.answer = '127.77.0.1';
  expect(nameServer.queries).toBeGreaterThan(1);
  expect(network.mirror.requests).toBe(before);
  const events = await network.events('denied');
  expect(events.some((one) => one.type === 'denied' && one.reason === 'answer')).toBe(true);
}

async function expectNothingReached(network: NetworkWorld): Promise<void> {
  const { address, port } = network.host;
  const before = network.host.connections;
  await withNetworked(network, async (box) => {
    const neighbour = await network.make();
    const at = neighbour.entry.network?.address ?? '';
    const scan = `for p in $(seq 1 1100); do (exec 3<>/dev/tcp/${GATEWAY}/$p) 2>/dev/null && echo $p; done`;
    const { stdout } = await box.run(['/bin/bash', '-c', scan], { timeoutMs: 60_000 });
    expect(stdout.trim().split('\n')).toEqual(['53', '80', '443']);
    for (const target of [address, at, '169.254.169.254', '100.96.0.1']) {
      for (const one of [port, 22, 80, 443, 4222, 7720]) {
        expect(await connect(box, target, one), `${target} port ${one}`).not.toBe('open');
      }
    }
    await neighbour.stop();
  });
  expect(network.host.connections).toBe(before);
  const control = connectTcp(port, address);
  await once(control, 'data');
  control.destroy();
}

const SLOW_REQUEST = `GET /slow HTTP/1.1\\r\\nHost: ${MIRROR}\\r\\n\\r\\n`;
const SLOW = `exec 3<>/dev/tcp/${MIRROR}/80; printf '${SLOW_REQUEST}' >&3; `;

async function expectRevoked(network: NetworkWorld): Promise<void> {
  await withNetworked(network, async (box) => {
    const flow = await box.start(['/bin/bash', '-c', `${SLOW}cat <&3; echo ended`], 'tick');
    const stopped = await box.start(
      ['/bin/bash', '-c', `${SLOW}echo ready; kill -STOP $$`],
      'ready',
    );
    // The control: nothing ends by itself.
    const seen = (await box.output(flow)).length;
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect((await box.output(flow)).length).toBeGreaterThan(seen);
    expect(network.mirror.open).toBe(2);
    const { lifecycle } = network.world.edge;
    const version = box.entry.network?.version ?? 0;
    const began = Date.now();
    await lifecycle.updateNetwork(box.entry, { version, rules: [] }, context());
    await until('the mirror has no connection', () =>
      network.mirror.open === 0 ? true : undefined,
    );
    await until('the reader has an end', async () =>
      (await box.output(flow)).includes('ended') ? true : undefined,
    );
    expect(Date.now() - began).toBeLessThan(1_000);
    void stopped;
  });
}

async function expectLastVersion(network: NetworkWorld): Promise<void> {
  await withNetworked(network, async (box) => {
    const { lifecycle } = network.world.edge;
    const loop = `while :; do (exec 3<>/dev/tcp/${MIRROR}/80) 2>/dev/null; echo try; done`;
    await box.start(['/bin/bash', '-c', loop], 'try');
    // The control: it is open.
    expect(await get(box, MIRROR)).toContain(MIRROR_TEXT);
    const first = box.entry.network?.version ?? 0;
    const change = async (rules: typeof MIRROR_RULES) => {
      for (;;) {
        const version = box.entry.network?.version ?? 0;
        try {
          return await lifecycle.updateNetwork(
            box.entry,
            { version, rules: [...rules] },
            context(),
          );
        } catch (thrown) {
          const { code } = asDsecError(thrown);
          if (code !== 'conflict' && code !== 'overloaded') throw thrown;
          await systemClock.sleep(1);
        }
      }
    };
    // Each of the two differs from what is in force, or it would be no change.
    const marked = (i: number) => [
      ...MIRROR_RULES,
      { kind: 'domain', target: `n${i}.dsec-tests.net` },
    ];
    await Promise.all(
      Array.from({ length: 100 }, (_, i) => change(marked(i) as unknown as typeof MIRROR_RULES)),
    );
    await change([]);
    expect(box.entry.network).toMatchObject({ version: first + 101, rules: [] });
    const { requests } = network.mirror;
    expect(await get(box, MIRROR)).not.toContain(MIRROR_TEXT);
    expect(network.mirror.requests).toBe(requests);
    expect(network.mirror.open).toBe(0);
  });
}

export const NETWORK_ROWS: readonly Row[] = [
  {
    ...{ id: 79, name: 'dns-types', expected: 'only addresses of allowed names' },
    check: (_, network) => expectTypesRefused(network),
  },
  {
    ...{ id: 80, name: 'dns-rebind', expected: 'private answers never count' },
    check: (_, network) => expectNeverRebound(network),
  },
  {
    ...{ id: 82, name: 'host-reach', expected: 'nothing but DNS and proxy' },
    check: (_, network) => expectNothingReached(network),
  },
  {
    ...{ id: 83, name: 'revoke-open', expected: 'dead within a second' },
    check: (_, network) => expectRevoked(network),
  },
  {
    ...{ id: 85, name: 'policy-race', expected: 'the last version, and no open window' },
    check: (_, network) => expectLastVersion(network),
  },
];
