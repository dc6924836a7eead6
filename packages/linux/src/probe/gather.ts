import { accessSync, constants } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, statfs, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { availableParallelism, release, tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { fileSystemName } from '../host-files.ts';
import { readResourceLimit } from '../process-control.ts';
import { bounded, childFailure, runChild } from './bounded.ts';
import { probeCgroup } from './cgroup-probe.ts';
import {
  type DiskFacts,
  FACT_FILES,
  FACT_TOOLS,
  fails,
  type HostFacts,
  type MountOutcomes,
  NAMESPACE_KINDS,
  type NamespaceKind,
  type Outcome,
  PROBED_MODULES,
  untried,
  works,
} from './facts.ts';
import {
  listSecurityModules,
  probeBpf,
  probeCoreScheduling,
  probeFuse,
  probeLandlock,
} from './kernel-probe.ts';
import { KVM_STARTED } from './kvm-probe.ts';
import { LIMITS, sysctlPath } from './limits.ts';
import { parseModuleState } from './parse.ts';

export interface GatherOptions {
  readonly erofsImage: Uint8Array | undefined;
  readonly stateDirectory: string;
  readonly probeTimeoutMs: number;
  readonly kvmTimeoutMs: number;
}

/** Learns everything about this host. Never rejects: what cannot be learned is absent or `untried`. */
export async function gatherFacts(options: GatherOptions): Promise<HostFacts> {
  const limitMs = options.probeTimeoutMs;
  const files = await readFiles(limitMs);
  const tools = findTools();
  // One after the other: each starts a Node process, which takes seconds on a slow host.
  const disk = await bounded(
    () => probeDisk(options.stateDirectory),
    limitMs,
    () => undefined,
  );
  const mounts = await probeMounts(tools.unshare, disk, options);
  const kvm = await probeKvm(options);
  const [namespaceFiles, namespaces, cgroup, qemu, modules] = await Promise.all([
    bounded(
      () => readdir('/proc/self/ns'),
      limitMs,
      () => [],
    ),
    probeNamespaces(tools.unshare, limitMs),
    bounded(() => probeCgroup(files), limitMs, noCgroup),
    probeQemu(limitMs),
    bounded(readModules, limitMs, unknownModules),
  ]);
  return {
    takenAt: new Date().toISOString(),
    arch: process.arch,
    kernelRelease: release(),
    uid: process.geteuid?.() ?? -1,
    cpus: availableParallelism(),
    openFiles: orUndefined(() => readResourceLimit('nofile')),
    files,
    modules,
    namespaceFiles,
    namespaces,
    cgroupCreate: cgroup.create,
    cgroupFiles: cgroup.files,
    cgroupControllers: cgroup.controllers,
    mounts,
    fuse: probeFuse(),
    landlock: probeLandlock(),
    securityModules: listSecurityModules(),
    bpf: probeBpf(),
    coreScheduling: probeCoreScheduling(),
    kvm,
    qemu,
    tools,
    disk,
  };
}

function orUndefined<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}

async function readFiles(limitMs: number): Promise<HostFacts['files']> {
  const read = async (path: string) => {
    const text = await bounded(
      () => readFile(path, 'utf8'),
      limitMs,
      () => undefined,
    );
    return [path, text] as const;
  };
  const paths = [...FACT_FILES, ...LIMITS.map((row) => sysctlPath(row.sysctl))];
  const pairs = await Promise.all(paths.map(read));
  return Object.fromEntries(
    pairs.filter((pair): pair is [string, string] => pair[1] !== undefined),
  );
}

/** Administrators' directories are searched even where an ordinary user's PATH leaves them out. */
function findTool(name: string): string | undefined {
  const path = `${process.env.PATH ?? ''}${delimiter}/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin`;
  return path
    .split(delimiter)
    .filter((directory) => directory.startsWith('/'))
    .map((directory) => join(directory, name))
    .find((candidate) => {
      return orUndefined(() => accessSync(candidate, constants.X_OK) ?? true) === true;
    });
}

function findTools(): HostFacts['tools'] {
  const found = FACT_TOOLS.map((name) => [name, findTool(name)] as const);
  return Object.fromEntries(found.filter((pair): pair is [never, string] => pair[1] !== undefined));
}

const NO_UNSHARE = 'unshare(1) was not found';

/**
 * Makes one namespace of each kind around true(1); the others than `user` are tried with the rights at
 * hand.
 */
async function probeNamespaces(
  unshare: string | undefined,
  limitMs: number,
): Promise<HostFacts['namespaces']> {
  const isRoot = process.geteuid?.() === 0;
  const probe = async (kind: NamespaceKind): Promise<[NamespaceKind, Outcome]> => {
    if (unshare === undefined) return [kind, untried(NO_UNSHARE)];
    const viaUser = kind === 'user' || isRoot ? [] : ['--user', '--map-root-user'];
    const fork = kind === 'pid' ? ['--fork'] : [];
    const result = await runChild(unshare, [...viaUser, `--${kind}`, ...fork, 'true'], limitMs);
    if (result.kind === 'exit' && result.code === 0) return [kind, works('one was made')];
    const why = childFailure(result);
    return [kind, isRoot && result.kind !== 'late' ? fails(why) : untried(why)];
  };
  const outcomes: [NamespaceKind, Outcome][] = [];
  for (const kind of NAMESPACE_KINDS) outcomes.push(await probe(kind));
  return Object.fromEntries(outcomes) as HostFacts['namespaces'];
}

function noCgroup(why: string) {
  return { create: untried(why), files: undefined, controllers: undefined };
}

const require = createRequire(import.meta.url);
/**
 * The compiled entry point: this package may itself be running from source, which Node cannot start a child
 * from.
 */
const childPath = () => require.resolve('@dsec/linux/probe-child');

async function probeMounts(
  unshare: string | undefined,
  disk: DiskFacts | undefined,
  options: GatherOptions,
): Promise<MountOutcomes> {
  if (process.geteuid?.() !== 0) return everyMount(untried('needs root'));
  if (unshare === undefined) return everyMount(untried(NO_UNSHARE));
  const directory = await makeTrialDirectory(disk);
  try {
    const imagePath = join(directory, 'image');
    if (options.erofsImage !== undefined) await writeFile(imagePath, options.erofsImage);
    const input = { directory, ...(options.erofsImage === undefined ? {} : { imagePath }) };
    const command = [process.execPath, childPath(), 'mounts', JSON.stringify(input)];
    const args = ['--mount', '--propagation', 'private', '--', ...command];
    const result = await runChild(unshare, args, options.probeTimeoutMs);
    const answer = result.kind === 'exit' && result.code === 0 ? result.stdout : undefined;
    if (answer === undefined) return everyMount(untried(childFailure(result)));
    return JSON.parse(answer) as MountOutcomes;
  } catch (thrown) {
    return everyMount(untried(String(thrown)));
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

/** Where layers will lie, since not every file system can hold them; elsewhere only if it takes nothing. */
async function makeTrialDirectory(disk: DiskFacts | undefined): Promise<string> {
  const elsewhere = () => mkdtemp(join(tmpdir(), 'dsec-doctor-'));
  return disk === undefined
    ? elsewhere()
    : mkdtemp(join(disk.path, '.dsec-doctor-')).catch(elsewhere);
}

function everyMount(outcome: Outcome): MountOutcomes {
  return {
    erofsFile: outcome,
    erofsDirectIo: outcome,
    overlayDescriptor: outcome,
    overlayPath: outcome,
    idmap: outcome,
  };
}

/** The limit of the guest counts from where the child has started, which takes long on a slow host. */
async function probeKvm(options: GatherOptions): Promise<Outcome> {
  try {
    const [startMs, limitMs] = [options.probeTimeoutMs, options.kvmTimeoutMs];
    const result = await runChild(process.execPath, [childPath(), 'kvm'], startMs, limitMs);
    if (result.kind === 'late' && result.stdout.startsWith(KVM_STARTED)) {
      return fails(`the test guest did not finish within ${limitMs} ms`);
    }
    if (result.kind !== 'exit' || result.code !== 0) return untried(childFailure(result));
    return JSON.parse(result.stdout.slice(KVM_STARTED.length)) as Outcome;
  } catch (thrown) {
    return untried(String(thrown));
  }
}

async function probeQemu(limitMs: number): Promise<HostFacts['qemu']> {
  const path = findTool(`qemu-system-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}`);
  if (path === undefined) return undefined;
  const result = await runChild(path, ['--version'], limitMs);
  const versionLine = result.kind === 'exit' ? (result.stdout.split('\n')[0] ?? '') : '';
  return { path, versionLine: versionLine === '' ? childFailure(result) : versionLine };
}

async function probeDisk(stateDirectory: string): Promise<DiskFacts> {
  let path = resolve(stateDirectory);
  for (;;) {
    try {
      const { type, bavail, blocks, bsize, ffree } = await statfs(path);
      return {
        path,
        fileSystem: fileSystemName(type),
        freeBytes: bavail * bsize,
        totalBytes: blocks * bsize,
        freeInodes: ffree,
      };
    } catch (thrown) {
      if (path === dirname(path)) throw thrown;
      path = dirname(path);
    }
  }
}

async function readModules(): Promise<HostFacts['modules']> {
  const directory = `/lib/modules/${release()}`;
  const [builtin, dep] = await Promise.all(
    ['modules.builtin', 'modules.dep'].map((name) => readFile(join(directory, name), 'utf8')),
  );
  const lists = { builtin: builtin ?? '', dep: dep ?? '' };
  const states = PROBED_MODULES.map((name) => [name, parseModuleState(name, lists)]);
  return Object.fromEntries(states) as HostFacts['modules'];
}

function unknownModules(): HostFacts['modules'] {
  const states = PROBED_MODULES.map((name) => [name, 'unknown']);
  return Object.fromEntries(states) as HostFacts['modules'];
}
