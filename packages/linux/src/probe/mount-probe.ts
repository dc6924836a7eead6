import { closeSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openTreeAttr } from '../mount-api.ts';
import {
  attach,
  type ErofsSpec,
  type MountFd,
  mountErofs,
  mountFdOf,
  mountOverlay,
  unmount,
} from '../mounts.ts';
import { createUserNamespace } from '../user-namespace.ts';
import { asOutcome, attempt } from './attempt.ts';
import { type MountOutcomes, type Outcome, untried } from './facts.ts';

/**
 * Tries the mounts that layers and sandboxes are made of. Runs in a child with a mount namespace of its
 * own, so that nothing shows in the host's table and a stuck mount dies with the child.
 */

export interface MountProbeInput {
  /** An empty directory on a disk of the host. */
  readonly directory: string;
  /** An EROFS image of one file, or nothing to try it with. */
  readonly imagePath?: string;
}

/** Any id range will do: it is only shown that ids move. */
const SHIFTED = { inside: 0, outside: 231_072, count: 65_536 };

export async function probeMounts(input: MountProbeInput): Promise<MountOutcomes> {
  const { imagePath } = input;
  const noImage = untried('no EROFS image was given to the probe');
  const withImage = (probe: (spec: ErofsSpec) => string) =>
    imagePath === undefined ? noImage : attempt(() => probe({ metaPath: imagePath, devices: [] }));
  return {
    erofsFile: withImage((spec) => mountAndList(input.directory, spec)),
    erofsDirectIo: withImage((spec) => mountAndList(input.directory, { ...spec, directIo: true })),
    overlayDescriptor: attempt(() => overlayOfDescriptors(input.directory, imagePath)),
    overlayPath: attempt(() => overlayOfPaths(input.directory)),
    idmap: await idmappedLayer(input.directory, imagePath),
  };
}

let made = 0;
function newDirectory(parent: string): string {
  const path = join(parent, `d${made++}`);
  mkdirSync(path);
  return path;
}

/** Attaches a mount for as long as `use` runs. */
function whileAttached<T>(parent: string, mount: MountFd, use: (path: string) => T): T {
  const target = newDirectory(parent);
  try {
    attach(mount, target);
  } finally {
    mount.close();
  }
  try {
    return use(target);
  } finally {
    unmount(target, { detach: true });
  }
}

function mountAndList(parent: string, spec: ErofsSpec): string {
  const entries = whileAttached(parent, mountErofs(spec), (path) => readdirSync(path).length);
  return `mounted from a file, ${entries} entries at its root`;
}

function writeThrough(path: string): void {
  const file = join(path, 'written');
  writeFileSync(file, 'x');
  if (statSync(file).size !== 1) throw new Error('the overlay lost a write');
}

function overlayOfDescriptors(parent: string, imagePath: string | undefined): string {
  // A detached clone of a directory or a detached EROFS mount: neither is in a table, which is the point.
  const layer =
    imagePath === undefined
      ? mountFdOf(openTreeAttr(newDirectory(parent), { set: ['readOnly'] }))
      : mountErofs({ metaPath: imagePath, devices: [] });
  try {
    const [upper, work] = [newDirectory(parent), newDirectory(parent)];
    const mount = mountOverlay({ form: 'descriptor', lower: [layer], upper, work });
    whileAttached(parent, mount, writeThrough);
    return `written through, over a detached ${imagePath === undefined ? 'directory' : 'EROFS'} mount`;
  } finally {
    layer.close();
  }
}

function overlayOfPaths(parent: string): string {
  const [lower, upper, work] = [newDirectory(parent), newDirectory(parent), newDirectory(parent)];
  const mount = mountOverlay({ form: 'path', lower: [lower], upper, work });
  whileAttached(parent, mount, writeThrough);
  return 'written through, redirect_dir=nofollow';
}

async function idmappedLayer(parent: string, imagePath: string | undefined): Promise<Outcome> {
  let namespaceFd: number;
  try {
    namespaceFd = await createUserNamespace(SHIFTED);
  } catch (thrown) {
    return asOutcome(thrown);
  }
  try {
    return attempt(() => shiftIds(parent, imagePath, namespaceFd));
  } finally {
    closeSync(namespaceFd);
  }
}

/** Clones an attached mount, as every kernel from 6.12 on can. */
function shiftIds(parent: string, imagePath: string | undefined, namespaceFd: number): string {
  const shift = (layerPath: string) => {
    const shifted = mountFdOf(openTreeAttr(layerPath, { idmapUserNamespaceFd: namespaceFd }));
    const { uid } = whileAttached(parent, shifted, (path) => statSync(path));
    if (uid !== SHIFTED.outside) throw new Error(`owner shows as ${uid}, not ${SHIFTED.outside}`);
  };
  if (imagePath === undefined) {
    shift(newDirectory(parent));
    return 'ids of a directory shifted';
  }
  whileAttached(parent, mountErofs({ metaPath: imagePath, devices: [] }), shift);
  return 'ids of an EROFS layer shifted';
}
