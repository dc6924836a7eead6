import { createHash } from 'node:crypto';
import { closeSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  BPF_ATTACH_TYPES,
  BPF_MAP_TYPES,
  BPF_PROGRAM_TYPES,
  createBpfMap,
  errnoOf,
  loadBpfProgram,
  openBpfObject,
  pinBpfObject,
} from '@dsec/linux';
import { DsecError } from '@dsec/std';
import { type BpfObjectMap, type BpfObjectProgram, parseBpfObject } from './elf.ts';

/**
 * The objects of the distribution to maps and programs in the kernel, pinned by name in a bpf file system.
 * A restarted edge finds those that are there; what another build or size made lies in another directory.
 */
export interface LoadedObjects {
  /** Where everything of this build and size is pinned. */
  readonly directory: string;
  readonly maps: ReadonlyMap<string, LoadedMap>;
  /** Descriptors, by the name of the section. */
  readonly programs: ReadonlyMap<string, number>;
  close(): void;
}

export interface LoadedMap extends BpfObjectMap {
  readonly fd: number;
}

export interface ObjectOptions {
  /** Where `make -C native` put the objects. */
  readonly objectsDirectory: string;
  /** In a bpf file system, of this edge alone. */
  readonly directory: string;
  /** Entries of the maps that have one for each slot, and of those that have one for each rule. */
  readonly slotsMax: number;
  readonly rulesMax: number;
}

export const OBJECT_FILES = ['packet.bpf.o', 'socket.bpf.o'] as const;

const CGROUP_SOCK_ADDR = BPF_PROGRAM_TYPES.cgroupSockAddr;
const ATTACH = BPF_ATTACH_TYPES;

/** What each section is for. */
export const PROGRAM_KINDS: Readonly<Record<string, { type: number; attachType: number }>> = {
  'tcx/ingress': { type: BPF_PROGRAM_TYPES.schedCls, attachType: ATTACH.tcxIngress },
  'tcx/egress': { type: BPF_PROGRAM_TYPES.schedCls, attachType: ATTACH.tcxEgress },
  'cgroup/connect4': { type: CGROUP_SOCK_ADDR, attachType: ATTACH.cgroupConnect4 },
  'cgroup/connect6': { type: CGROUP_SOCK_ADDR, attachType: ATTACH.cgroupConnect6 },
  'cgroup/sendmsg4': { type: CGROUP_SOCK_ADDR, attachType: ATTACH.cgroupSendmsg4 },
  'cgroup/sendmsg6': { type: CGROUP_SOCK_ADDR, attachType: ATTACH.cgroupSendmsg6 },
  'cgroup/bind4': { type: CGROUP_SOCK_ADDR, attachType: ATTACH.cgroupBind4 },
  'cgroup/bind6': { type: CGROUP_SOCK_ADDR, attachType: ATTACH.cgroupBind6 },
  'cgroup/sock_create': {
    type: BPF_PROGRAM_TYPES.cgroupSock,
    attachType: ATTACH.cgroupSockCreate,
  },
};

const PER_SLOT = new Set(['slots', 'counters', 'rules', 'cgroups', 'devices']);
const PER_RULE = new Set(['rules_inner']);

/**
 * Finds or makes all maps, then all programs. Takes tens of milliseconds when it makes them. `data-loss`:
 * an object is damaged. `not-found`: it was not built.
 */
export function loadObjects(options: ObjectOptions): LoadedObjects {
  const files = OBJECT_FILES.map((name) => readObject(join(options.objectsDirectory, name)));
  const objects = files.map(parseBpfObject);
  const hash = createHash('sha256').update(`${options.slotsMax} ${options.rulesMax}`);
  for (const file of files) hash.update(file);
  const directory = join(options.directory, `filter-${hash.digest('hex').slice(0, 16)}`);
  const specs = sharedMaps(objects.flatMap(({ maps }) => maps)).map((map) => sized(map, options));
  dropUnlessWhole(directory, specs);

  const descriptors: number[] = [];
  const close = () => {
    for (const fd of descriptors.splice(0)) closeSync(fd);
  };
  const keep = (fd: number) => {
    descriptors.push(fd);
    return fd;
  };
  try {
    for (const part of ['maps', 'programs', 'hooks', 'packets']) {
      mkdirSync(join(directory, part), { recursive: true, mode: 0o700 });
    }
    const maps = new Map<string, LoadedMap>();
    for (const spec of specs) {
      const fd = keep(findOrPin(join(directory, 'maps', spec.name), () => makeMap(spec, maps)));
      maps.set(spec.name, { ...spec, fd });
    }
    const programs = new Map<string, number>();
    for (const { license, programs: own } of objects) {
      for (const program of own) {
        const path = join(directory, 'programs', pinName(program.section));
        const fd = keep(findOrPin(path, () => loadProgram(program, license, maps)));
        programs.set(program.section, fd);
      }
    }
    return { directory, maps, programs, close };
  } catch (thrown) {
    close();
    throw thrown;
  }
}

/** A name that a bpf file system takes: those with a dot are its own. */
export const pinName = (section: string) => section.replaceAll(/[^a-z0-9_]/g, '-');

/** Opens what is pinned, or makes it and pins it. Returns the descriptor. */
export function findOrPin(path: string, make: () => number): number {
  try {
    return openBpfObject(path);
  } catch (thrown) {
    if (errnoOf(thrown) !== 'ENOENT') throw thrown;
  }
  const fd = make();
  try {
    pinBpfObject(fd, path);
  } catch (thrown) {
    closeSync(fd);
    throw thrown;
  }
  return fd;
}

function readObject(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (cause) {
    const message = `${path} is not there: the packet filter was not built (make -C native)`;
    throw new DsecError('not-found', message, { cause });
  }
}

/** The maps of all objects, each once: what two of them describe must be the same. */
function sharedMaps(all: readonly BpfObjectMap[]): BpfObjectMap[] {
  const byName = new Map<string, BpfObjectMap>();
  for (const map of all) {
    const other = byName.get(map.name);
    if (other !== undefined && JSON.stringify(other) !== JSON.stringify(map)) {
      throw new DsecError('data-loss', `BPF objects of different builds: map ${map.name} differs`);
    }
    byName.set(map.name, map);
  }
  // What an array of maps is described by comes before it.
  return [...byName.values()].sort((a, b) => Number(isArrayOfMaps(a)) - Number(isArrayOfMaps(b)));
}

function sized(map: BpfObjectMap, { slotsMax, rulesMax }: ObjectOptions): BpfObjectMap {
  if (PER_SLOT.has(map.name)) return { ...map, entriesMax: slotsMax };
  return PER_RULE.has(map.name) ? { ...map, entriesMax: rulesMax } : map;
}

const isArrayOfMaps = (map: BpfObjectMap) => map.type === BPF_MAP_TYPES.arrayOfMaps;

function makeMap(spec: BpfObjectMap, others: ReadonlyMap<string, LoadedMap>): number {
  if (!isArrayOfMaps(spec)) return createBpfMap(spec);
  const inner = others.get(`${spec.name}_inner`);
  if (inner === undefined) throw new DsecError('data-loss', `BPF object: ${spec.name} of nothing`);
  return createBpfMap({ ...spec, innerMapFd: inner.fd });
}

function loadProgram(
  program: BpfObjectProgram,
  license: string,
  maps: ReadonlyMap<string, LoadedMap>,
): number {
  const kind = PROGRAM_KINDS[program.section];
  if (kind === undefined) {
    throw new DsecError('data-loss', `BPF object: nobody knows what ${program.section} is for`);
  }
  const instructions = Buffer.from(program.instructions);
  for (const { offset, map } of program.references) {
    const fd = maps.get(map)?.fd;
    if (fd === undefined) throw new DsecError('data-loss', `BPF object: no map ${map}`);
    // The source register says of which kind the loaded value is: a map's descriptor.
    const BPF_PSEUDO_MAP_FD = 1;
    instructions[offset + 1] = ((instructions[offset + 1] ?? 0) & 0x0f) | (BPF_PSEUDO_MAP_FD << 4);
    instructions.writeUInt32LE(fd, offset + 4);
  }
  const name = program.section.replace(/^.*\//, '');
  return loadBpfProgram({ ...kind, name, license, instructions });
}

/**
 * Maps are pinned before any program. Should a map be missing while there are programs, these hold another
 * one that nobody can reach: all is made anew.
 */
function dropUnlessWhole(directory: string, specs: readonly BpfObjectMap[]): void {
  const isPinned = (path: string) => {
    try {
      closeSync(openBpfObject(path));
      return true;
    } catch {
      return false;
    }
  };
  const hasProgram = Object.keys(PROGRAM_KINDS).some((section) =>
    isPinned(join(directory, 'programs', pinName(section))),
  );
  const isWhole = specs.every(({ name }) => isPinned(join(directory, 'maps', name)));
  if (hasProgram && !isWhole) rmSync(directory, { recursive: true, force: true });
}
