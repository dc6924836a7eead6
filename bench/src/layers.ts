import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeDistributionBase } from '@dsec/dsec';
import { openLayerStore, readManifest, resolveRef } from '@dsec/layers';
import { mountErofs } from '@dsec/linux';
import { formatBytes, MIB } from '@dsec/std';
import { maximumWhile, measureProcess, type ProcessCost } from './measure.ts';
import {
  type BenchOptions,
  type BenchReport,
  describeMachine,
  type Metric,
  metric,
  RUNS,
  ratios,
} from './report.ts';

const REPOSITORY = fileURLToPath(new URL('../../', import.meta.url));
const CLI = join(REPOSITORY, 'packages/dsec/dist/cli.js');
const CACHE = join(REPOSITORY, '.cache/bench');
/** A tmpfs on every distribution that we run on. */
const TMPFS = '/dev/shm';
const MOUNTS = 200;

/** One way to make a file system image, or to unpack an archive, from the same tree. */
interface Contestant {
  readonly name: string;
  /** Where its output goes; default is the disk that the layers go to. */
  readonly scratch?: string;
  /** Writes below `output`, a new empty directory. */
  argv(output: string): [string, ...string[]];
}

/**
 * Writing a layer of about 500 MB: our writer from a tar, a compressed tar and a directory, against
 * mkfs.erofs of the distribution and against unpacking the compressed tar, to disk and to memory. All
 * contestants take turns, so that drift hits all alike.
 */
export async function benchLayers({ runs = RUNS, say }: BenchOptions): Promise<BenchReport> {
  const machine = describeMachine();
  const scratch = mkdtempSync(join(tmpdir(), 'dsec-bench-layers-'));
  try {
    const input = await prepareInput(scratch, say);
    const { contestants, mkfsVersion } = contestantsFor(input);
    const costs = new Map<string, ProcessCost[]>(contestants.map(({ name }) => [name, []]));
    const temporaryBytes: number[] = [];
    for (let run = 0; run <= runs; run += 1) {
      for (const contestant of contestants) {
        const { cost, temporary } = await runOnce(contestant, scratch);
        if (run === 0) continue; // the first round warms the page cache
        costs.get(contestant.name)?.push(cost);
        if (contestant.name === 'tar') temporaryBytes.push(temporary);
      }
      say(run === 0 ? 'warm-up done' : `round ${run} of ${runs} done`);
    }
    const layer = await inspectLayer(input, scratch, runs);
    return {
      bench: 'layers',
      machine,
      protections: [],
      upper: 'none',
      metrics: [
        ...writeMetrics(costs, input),
        ...temporaryMetrics(temporaryBytes, layer),
        ...layer.metrics,
      ],
      notes: [
        `input: ${formatBytes(input.contentBytes)} in ${input.entries} entries`,
        `peers: ${mkfsVersion}; ${firstLine('tar', '--version')}`,
        'our figures are whole commands: Node, both processes, digests of all data and fsync included',
        'write_cpu_over_untar is against unpacking to the disk that the layers go to; _tmpfs: to memory',
        'mkfs.erofs writes 64 KiB chunks and a separate blob, as our format has; it does not sync',
      ],
    };
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
}

interface Input {
  readonly tar: string;
  readonly tarGz: string;
  readonly tree: string;
  readonly tarBytes: number;
  readonly contentBytes: number;
  readonly entries: number;
}

async function prepareInput(scratch: string, say: BenchOptions['say']): Promise<Input> {
  mkdirSync(CACHE, { recursive: true });
  say('making the input: a root of this distribution (a minute when it is not cached)');
  const { tarPath } = await makeDistributionBase(CACHE);
  const tarGz = join(scratch, 'base.tar.gz');
  const tree = join(scratch, 'tree');
  mkdirSync(tree);
  execFileSync('sh', ['-c', 'exec gzip -c -6 "$1" > "$2"', 'sh', tarPath, tarGz]);
  execFileSync('tar', ['-xpf', tarPath, '-C', tree, '--numeric-owner']);
  const { bytes, entries } = measureTree(tree);
  return {
    tar: tarPath,
    tarGz,
    tree,
    tarBytes: statSync(tarPath).size,
    contentBytes: bytes,
    entries,
  };
}

function measureTree(root: string): { bytes: number; entries: number } {
  let bytes = 0;
  let entries = 0;
  const pending = [root];
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
    for (const name of readdirSync(directory)) {
      const path = join(directory, name);
      const stat = lstatSync(path);
      entries += 1;
      if (stat.isFile()) bytes += stat.size;
      if (stat.isDirectory()) pending.push(path);
    }
  }
  return { bytes, entries };
}

function contestantsFor(input: Input): { contestants: Contestant[]; mkfsVersion: string } {
  const untar: Contestant['argv'] = (output) => {
    return ['tar', '-xzpf', input.tarGz, '-C', output, '--numeric-owner'];
  };
  const mkfs = findMkfs();
  const dsec = (source: string) => (output: string) =>
    ['node', CLI, '--state', output, '--json', 'layer', 'import', 'base/bench:1.0.0', source] as [
      string,
      ...string[],
    ];
  return {
    mkfsVersion: firstLine(mkfs, '--version'),
    contestants: [
      { name: 'tar', argv: dsec(input.tar) },
      { name: 'targz', argv: dsec(input.tarGz) },
      { name: 'directory', argv: dsec(input.tree) },
      {
        name: 'mkfs',
        argv: (output) => [
          mkfs,
          '--quiet',
          `--chunksize=${64 * 1024}`,
          `--blobdev=${join(output, 'blob')}`,
          join(output, 'meta.erofs'),
          input.tree,
        ],
      },
      { name: 'untar', argv: untar },
      { name: 'untar_tmpfs', scratch: TMPFS, argv: untar },
    ],
  };
}

/** What a program says first: mkfs.erofs 1.5 names itself, then fails on an option that it does not know. */
function firstLine(file: string, argument: string): string {
  return spawnSync(file, [argument], { encoding: 'utf8' }).stdout.split('\n')[0] ?? file;
}

function findMkfs(): string {
  const directories = [
    join(REPOSITORY, '.cache/oracle/bin'),
    ...(process.env.PATH ?? '').split(delimiter),
  ];
  const found = directories.map((directory) => join(directory, 'mkfs.erofs')).find(existsSync);
  if (found === undefined)
    throw new Error('mkfs.erofs is missing: node tools/bootstrap.mjs --test');
  return found;
}

async function runOnce(contestant: Contestant, scratch: string) {
  const output = mkdtempSync(join(contestant.scratch ?? scratch, 'dsec-bench-output-'));
  try {
    let cost: ProcessCost | undefined;
    const work = async () => {
      cost = await measureProcess(contestant.argv(output));
    };
    const temporary =
      contestant.name === 'tar' ? await maximumWhile(50, () => allocatedBytes(output), work) : 0;
    if (contestant.name !== 'tar') await work();
    if (cost === undefined) throw new Error(`${contestant.name} was not measured`);
    return { cost, temporary };
  } finally {
    rmSync(output, { recursive: true, force: true });
  }
}

function allocatedBytes(root: string): number {
  let bytes = 0;
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    try {
      bytes += lstatSync(join(entry.parentPath, entry.name)).blocks * 512;
    } catch {
      // renamed or removed between the listing and now
    }
  }
  return bytes;
}

function writeMetrics(costs: ReadonlyMap<string, ProcessCost[]>, input: Input): Metric[] {
  const cpu = (name: string) => (costs.get(name) ?? []).map((cost) => cost.cpuMs);
  const wall = (name: string) => (costs.get(name) ?? []).map((cost) => cost.wallMs);
  const peak = (name: string) => (costs.get(name) ?? []).map((cost) => cost.peakRssBytes / MIB);
  const throughput = (name: string) =>
    wall(name).map((ms) => input.contentBytes / 1e6 / (ms / 1000));
  return [
    metric(
      'layers.write_cpu_over_mkfs',
      'ratio',
      'lower',
      ratios(cpu('directory'), cpu('mkfs')),
      1.5,
    ),
    metric('layers.write_cpu_over_untar', 'ratio', 'lower', ratios(cpu('targz'), cpu('untar')), 1),
    metric(
      'layers.write_cpu_over_untar_tmpfs',
      'ratio',
      'lower',
      ratios(cpu('targz'), cpu('untar_tmpfs')),
    ),
    metric('layers.write.tar.cpu_ms', 'ms', 'lower', cpu('tar')),
    metric('layers.write.targz.cpu_ms', 'ms', 'lower', cpu('targz')),
    metric('layers.write.directory.cpu_ms', 'ms', 'lower', cpu('directory')),
    metric('layers.peer.mkfs.directory.cpu_ms', 'ms', 'lower', cpu('mkfs')),
    metric('layers.peer.untar.targz.cpu_ms', 'ms', 'lower', cpu('untar')),
    metric('layers.peer.untar_tmpfs.targz.cpu_ms', 'ms', 'lower', cpu('untar_tmpfs')),
    metric('layers.write.tar.mb_per_s', 'MB/s', 'higher', throughput('tar')),
    metric('layers.write.targz.mb_per_s', 'MB/s', 'higher', throughput('targz')),
    metric('layers.write.directory.mb_per_s', 'MB/s', 'higher', throughput('directory')),
    metric('layers.peer.mkfs.directory.mb_per_s', 'MB/s', 'higher', throughput('mkfs')),
    metric('layers.peer.untar.targz.mb_per_s', 'MB/s', 'higher', throughput('untar')),
    metric('layers.write.tar.peak_mib', 'MiB', 'lower', peak('tar')),
    metric('layers.write.targz.peak_mib', 'MiB', 'lower', peak('targz')),
    metric('layers.write.directory.peak_mib', 'MiB', 'lower', peak('directory')),
    metric('layers.peer.mkfs.directory.peak_mib', 'MiB', 'lower', peak('mkfs')),
  ];
}

interface InspectedLayer {
  readonly bytes: number;
  readonly metrics: Metric[];
}

function temporaryMetrics(temporaryBytes: readonly number[], layer: InspectedLayer): Metric[] {
  const beyond = temporaryBytes.map((bytes) => Math.max(0, bytes - layer.bytes) / MIB);
  return [metric('layers.write.tar.temporary_beyond_layer_mib', 'MiB', 'lower', beyond, 64)];
}

/**
 * Size of the layer, share of its metadata, and the time to mount it (a detached mount, made and
 * closed again).
 */
async function inspectLayer(input: Input, scratch: string, runs: number): Promise<InspectedLayer> {
  const state = join(scratch, 'state');
  await measureProcess([
    'node',
    CLI,
    '--state',
    state,
    'layer',
    'import',
    'base/bench:1.0.0',
    input.tar,
  ]);
  const store = await openLayerStore(join(state, 'store'));
  const { layerId } = await resolveRef(store, 'base/bench:1.0.0');
  const manifest = await readManifest(store, layerId);
  const hex = (digest: string) => digest.slice('sha256:'.length);
  const metaPath = join(store.root, 'layers', hex(layerId), 'meta.erofs');
  const devices = manifest.devices.map(({ blobId }) =>
    join(store.root, 'blobs', hex(blobId), 'data'),
  );
  const data = manifest.devices.reduce((sum, device) => sum + device.bytes, 0);
  const mountMs: number[] = [];
  for (let run = 0; run < runs; run += 1) {
    const started = process.hrtime.bigint();
    for (let i = 0; i < MOUNTS; i += 1) mountErofs({ metaPath, devices }).close();
    mountMs.push(Number(process.hrtime.bigint() - started) / 1e6 / MOUNTS);
  }
  return {
    bytes: data + manifest.metaBytes,
    metrics: [
      metric('layers.mount_ms', 'ms', 'lower', mountMs),
      metric('layers.metadata_share_pct', '%', 'lower', [
        (100 * manifest.metaBytes) / (manifest.metaBytes + data),
      ]),
    ],
  };
}
