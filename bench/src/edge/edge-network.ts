/** The network of a benchmark's edge: a mirror in its own process, and how sandboxes use it. */
import { createServer } from 'node:net';
import { join } from 'node:path';
import type { Backend, BackendReport } from '@dsec/backend';
import { createNodeNetwork, type Edge, type EdgeOptions, NETWORK_DEFAULTS } from '@dsec/edge';
import type { NetworkRule, SandboxCreate } from '@dsec/protocol';
import { MIB, systemClock } from '@dsec/std';
import { REPOSITORY } from '../base-layer.ts';
import { contextOf } from './edge-driver.ts';

const MIRROR = 'mirror.dsec-bench.net';
const ADDRESS = '127.77.0.2';
const BLOCK = Buffer.alloc(MIB);
export const MIRROR_RULES: NetworkRule[] = [{ kind: 'service', target: 'mirror' }];

export interface NetworkDriver {
  readonly commands: {
    /** Times of a change of all rules, in a sandbox that has so many. */
    changeMs(input: { readonly rules: number; readonly count: number }): Promise<readonly number[]>;
    /** For each of `count` connections from inside, one after the other, to the egress proxy. */
    connectMs(input: { readonly rules: number; readonly count: number }): Promise<number>;
    /** Through DNS and the egress proxy, from the first byte of the request to the last of the answer. */
    downloadMs(input: { readonly bytes: number }): Promise<number>;
  };
}

/** Answers the path `/N` with N bytes. */
export async function startMirror(): Promise<{ close(): void }> {
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('data', (request) => {
      let left = Number(/^GET \/(\d+)/.exec(request.toString('latin1'))?.[1] ?? 0);
      socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${left}\r\nConnection: close\r\n\r\n`);
      const more = () => {
        while (left > 0) {
          const piece = BLOCK.subarray(0, Math.min(left, BLOCK.length));
          left -= piece.length;
          if (!socket.write(piece)) return;
        }
        socket.end();
      };
      socket.on('drain', more);
      more();
    });
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(80, ADDRESS, resolve);
  });
  return { close: () => void server.close() };
}

export function openNetworkOf(
  kind: 'filtered' | 'unfiltered' | undefined,
  stateRoot: string,
): Pick<EdgeOptions, 'openNetwork'> {
  if (kind === undefined) return {};
  const mirror = { names: [MIRROR], ports: [80], addresses: [ADDRESS] };
  const operator = { services: { mirror: { names: [MIRROR], ports: [80], mirror } } };
  const objectsDirectory = join(REPOSITORY, 'native/build/bpf');
  return {
    openNetwork: (backend: Backend, report: BackendReport) =>
      createNodeNetwork({
        ...{ backend, report, operator, clock: systemClock, ...NETWORK_DEFAULTS },
        ...(kind === 'filtered' ? { filter: { objectsDirectory, stateRoot } } : {}),
      }),
  };
}

const rulesOf = (count: number, turn: number): NetworkRule[] => [
  ...MIRROR_RULES,
  ...Array.from({ length: Math.max(0, count - 1) }, (_, i): NetworkRule => {
    return { kind: 'domain', target: `n${i}.t${turn}.dsec-bench.net` };
  }),
];

export function createNetworkDriver(edge: Edge, create: SandboxCreate): NetworkDriver['commands'] {
  async function withSandbox<T>(
    rules: NetworkRule[],
    work: (
      run: (script: string) => Promise<number>,
      change: (rules: NetworkRule[]) => Promise<void>,
    ) => Promise<T>,
  ): Promise<T> {
    const entry = await edge.lifecycle.create(
      { ...create, layers: [...(create.layers ?? [])], network: rules },
      contextOf(),
    );
    const run = async (script: string) => {
      const spec = { argv: ['/bin/bash', '-c', script], waitMs: 60_000 };
      const started = performance.now();
      const { exec, stderr } = await edge.exec.execs.start(entry, spec, contextOf());
      if (exec.exit?.exitCode !== 0) throw new Error(`in a sandbox: ${stderr?.text}`);
      return performance.now() - started;
    };
    const change = (next: NetworkRule[]) => {
      const { version } = edge.sandboxes.get(entry.id).network ?? { version: 0 };
      return edge.lifecycle.updateNetwork(entry, { version, rules: next }, contextOf());
    };
    try {
      return await work(run, change);
    } finally {
      await edge.lifecycle.stop(entry, contextOf());
    }
  }

  const target = `/dev/tcp/${NETWORK_DEFAULTS.gateway}/80`;
  return {
    changeMs: ({ rules, count }) =>
      withSandbox(rulesOf(rules, 0), async (_, change) => {
        const times: number[] = [];
        for (let turn = 1; turn <= count; turn += 1) {
          const started = performance.now();
          await change(rulesOf(rules, turn));
          times.push(performance.now() - started);
        }
        return times;
      }),
    connectMs: ({ rules, count }) =>
      withSandbox(rulesOf(rules, 0), async (run) => {
        const loop = (inner: string) => `for ((i = 0; i < ${count}; i++)); do ${inner}; done`;
        const empty = await run(loop('exec 3</dev/null; exec 3<&-'));
        return ((await run(loop(`exec 3<>${target}; exec 3<&-`))) - empty) / count;
      }),
    downloadMs: ({ bytes }) =>
      withSandbox(MIRROR_RULES, async (run) => {
        const request = `GET /${bytes} HTTP/1.1\\r\\nHost: ${MIRROR}\\r\\nConnection: close\\r\\n\\r\\n`;
        return run(`exec 3<>/dev/tcp/${MIRROR}/80; printf '${request}' >&3; cat <&3 >/dev/null`);
      }),
  };
}
