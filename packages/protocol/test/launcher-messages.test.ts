import {
  createFrameDecoder,
  encodeFrame,
  LAUNCHER_FRAMES,
  NAMESPACE_BITS,
  type SpawnFields,
} from '@dsec/protocol';
import { expect, test } from 'vitest';

const layer = `sha256:${'0'.repeat(64)}`;
const text = (value: string) => Buffer.from(value);

/** A container as step B will make it, to see that a real spec fits with room to spare. */
const spawn: SpawnFields = {
  name: 'sb-a-b-0123456789abcdef',
  generation: 1,
  kind: 'sandbox',
  namespaces: Object.values(NAMESPACE_BITS).reduce((sum, bit) => sum + bit, 0),
  idMaps: [{ inside: 0, outside: 2 ** 30, count: 65_536 }],
  sessionIdMaps: [{ inside: 0, outside: 1, count: 65_535 }],
  root: {
    layers: Array.from({ length: 64 }, () => ({ layerId: layer })),
    upper: { driver: 'tmpfs', sizeBytes: 2 ** 30, inodesMax: 100_000 },
    nosuid: true,
  },
  mounts: Array.from({ length: 40 }, (_, i) => ({
    kind: 'mask' as const,
    target: text(`proc/some/path/${i}`),
    flags: 15,
  })),
  sysctls: [{ name: 'net.ipv4.ip_unprivileged_port_start', value: '0' }],
  cgroups: [
    {
      hierarchy: 'unified',
      directory: text('sb-a-b-0123456789abcdef'),
      settings: [{ name: 'memory.max', value: '1073741824' }],
    },
  ],
  rlimits: [{ resource: 7, soft: 1024, hard: 4096 }, { resource: 4 }],
  capabilities: 2 ** 40,
  noNewPrivileges: true,
  seccomp: new Uint8Array(4096),
  uid: 0,
  gid: 0,
  argv: [text('aether')],
  env: [],
  descriptors: [
    { number: 0, kind: 'null' },
    { number: 3, kind: 'listener', name: text('run/sb-a-b-0123456789abcdef/agent.sock') },
  ],
  oomScoreAdj: -500,
};

test('the spec of a large container is far below the frame limit and comes back whole', () => {
  const frame = { type: 'spawn', stream: 1, epoch: 1, offset: 0, fields: spawn } as const;
  const bytes = encodeFrame(LAUNCHER_FRAMES, frame);
  expect(bytes.byteLength).toBeLessThan(32 * 1024);
  const [decoded] = createFrameDecoder(LAUNCHER_FRAMES, { from: 'client' }).push(bytes);
  expect(JSON.stringify(decoded)).toBe(JSON.stringify(bufferized(frame)));
});

/** Decoded bytes are Buffers, which print otherwise than a Uint8Array. */
function bufferized(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value);
  if (Array.isArray(value)) return value.map(bufferized);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, bufferized(part)]));
}
