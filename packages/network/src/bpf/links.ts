import {
  closeSync,
  existsSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs';
import { join } from 'node:path';
import {
  bpfProgramId,
  createBpfLink,
  detachBpfLink,
  errnoOf,
  filterDevice,
  inNetworkNamespace,
  openBpfObject,
  pinBpfObject,
  readBpfLink,
} from '@dsec/linux';
import { type LoadedObjects, PROGRAM_KINDS, pinName } from './objects.ts';

/** The hooks at the cgroup that all sandboxes of a node share. They are found again if they still fit. */
export function attachHooks(objects: LoadedObjects, cgroup: string): void {
  const cgroupId = statSync(cgroup, { bigint: true }).ino;
  const target = openSync(cgroup, 'r');
  try {
    for (const [section, programFd] of objects.programs) {
      if (!section.startsWith('cgroup/')) continue;
      const path = join(objects.directory, 'hooks', pinName(section));
      const fits = (linkFd: number) =>
        readBpfLink(linkFd).cgroupId === cgroupId &&
        readBpfLink(linkFd).programId === bpfProgramId(programFd);
      if (isPinnedFitting(path, fits)) continue;
      replacePin(path, () => createBpfLink({ programFd, target, attachType: attachOf(section) }));
    }
  } finally {
    closeSync(target);
  }
}

const DIRECTIONS = ['tcx/ingress', 'tcx/egress'] as const;

/** The packet program at both directions of a device, which lies in that network namespace. */
export function attachPackets(
  objects: LoadedObjects,
  slot: number,
  device: { readonly namespaceFd: number; readonly index: number },
): void {
  for (const section of DIRECTIONS) {
    const programFd = objects.programs.get(section) ?? -1;
    const path = packetPin(objects.directory, slot, section);
    const fits = (linkFd: number) =>
      readBpfLink(linkFd).target === device.index &&
      readBpfLink(linkFd).programId === bpfProgramId(programFd);
    if (isPinnedFitting(path, fits)) continue;
    replacePin(path, () =>
      inNetworkNamespace(device.namespaceFd, () =>
        createBpfLink({ programFd, target: device.index, attachType: attachOf(section) }),
      ),
    );
  }
}

/** The same for a device that no other sandbox gets: the programs stay as long as it does. */
export function filterPackets(
  objects: LoadedObjects,
  device: { readonly namespaceFd: number; readonly index: number },
): void {
  const [ingress = -1, egress = -1] = DIRECTIONS.map((section) => objects.programs.get(section));
  filterDevice({ ...device, ingress, egress });
}

/** Takes the packet programs of a slot away, if there are any. */
export function detachPackets(directory: string, slot: number): void {
  for (const section of DIRECTIONS) {
    const path = packetPin(directory, slot, section);
    dropPin(path);
    dropPin(freshPin(path));
  }
}

/** Takes every program of a filter away, wherever it is attached. */
export function detachAll(directory: string): void {
  for (const part of ['hooks', 'packets']) {
    const path = join(directory, part);
    if (!existsSync(path)) continue;
    for (const name of readdirSync(path)) dropPin(join(path, name));
  }
}

/** The slots whose devices have a packet program. */
export function slotsWithPackets(directory: string): number[] {
  const names = readdirSync(join(directory, 'packets'));
  return [...new Set(names.map((name) => Number.parseInt(name, 10)))];
}

const packetPin = (directory: string, slot: number, section: string) =>
  join(directory, 'packets', `${slot}-${pinName(section)}`);

const attachOf = (section: string) => PROGRAM_KINDS[section]?.attachType ?? 0;

function isPinnedFitting(path: string, fits: (linkFd: number) => boolean): boolean {
  return withPinned(path, fits) ?? false;
}

function dropPin(path: string): void {
  withPinned(path, detachBpfLink);
  rmSync(path, { force: true });
}

/** Does something with a pinned link, if it is there. */
function withPinned<Result>(path: string, work: (linkFd: number) => Result): Result | undefined {
  let fd: number;
  try {
    fd = openBpfObject(path);
  } catch (thrown) {
    if (errnoOf(thrown) === 'ENOENT') return undefined;
    throw thrown;
  }
  try {
    return work(fd);
  } finally {
    closeSync(fd);
  }
}

/**
 * The new link works before the old one is let go, and takes its name in one step: whoever dies in between
 * leaves one of them in force.
 */
function replacePin(path: string, make: () => number): void {
  const fresh = freshPin(path);
  dropPin(fresh);
  const fd = make();
  try {
    pinBpfObject(fd, fresh);
    renameSync(fresh, path);
  } finally {
    closeSync(fd);
  }
}

const freshPin = (path: string) => `${path}-new`;
