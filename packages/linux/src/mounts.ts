import { closeSync } from 'node:fs';
import { DsecError } from '@dsec/std';
import { type BytePath, descriptorPath, pathBytes } from './byte-path.ts';
import { errnoOf } from './errno.ts';
import {
  FSCONFIG_STRING_BYTES_MAX,
  type FsParameter,
  type MountAttribute,
  mountDetached,
  moveMount,
  umount,
} from './mount-api.ts';
import { O_PATH, openAt } from './open.ts';

/**
 * The mounts that layers and sandboxes are made of. Every function blocks, works on this process's mount
 * namespace, and leaves it to the caller that this is a private one. Nothing here follows a final symbolic
 * link of a target.
 */

/**
 * A mount that its holder can attach, use as an overlay layer, or drop. Closing it undoes a mount never
 * attached.
 */
export interface MountFd {
  readonly fd: number;
  /** Closes the descriptor; a second call does nothing. */
  close(): void;
}

export interface ErofsSpec {
  /** The metadata file (or the whole image). */
  readonly metaPath: BytePath;
  /** Data blobs in the order of the image's device table. */
  readonly devices: readonly BytePath[];
  /** Reads data past the page cache of the files underneath, so that each page is cached once. */
  readonly directIo?: boolean;
  /** Read-only always; these come on top. A layer of a root keeps set-user-id: it must not be `noSuid`. */
  readonly attributes?: readonly MountAttribute[];
}

/** A layer that stands for a directory: a mount held by descriptor, or a path. */
export type OverlayLayer = MountFd | BytePath;

interface OverlayBase {
  /** On one file system with each other, both or neither. Without them the overlay is read-only. */
  readonly upper?: OverlayLayer;
  readonly work?: OverlayLayer;
  /** Never syncs the upper: fast, and after a crash of the host the upper must be thrown away. */
  readonly volatile?: boolean;
  /** Default `['noDev']`. */
  readonly attributes?: readonly MountAttribute[];
}

export type OverlaySpec =
  /** Topmost first. Kernel 6.13 and newer; layers may be detached from 6.15 on (`overlayFormOf`). */
  | (OverlayBase & { readonly form: 'descriptor'; readonly lower: readonly OverlayLayer[] })
  /** Topmost first. Every kernel from 6.8 on; each layer is a path in this mount namespace. */
  | (OverlayBase & {
      readonly form: 'path';
      readonly lower: readonly BytePath[];
      readonly upper?: BytePath;
      readonly work?: BytePath;
    });

/** The kernel refuses the 501st layer. */
export const OVERLAY_LAYERS_MAX = 500;

/**
 * Mounts an EROFS image from files, without a loop device, detached and read-only. It trusts the image:
 * verify it first, since the kernel's parser must not see bytes made elsewhere. Waits for reads of the
 * metadata, so never mount files that this very process serves by FUSE. `data-loss`: the kernel found the
 * image damaged.
 */
export function mountErofs(spec: ErofsSpec): MountFd {
  const names = openNames();
  try {
    const parameters: FsParameter[] = [
      { kind: 'string', key: 'source', value: names.nameOf(spec.metaPath) },
      ...spec.devices.map(
        (device): FsParameter => ({ kind: 'string', key: 'device', value: names.nameOf(device) }),
      ),
      ...(spec.directIo ? [{ kind: 'flag', key: 'directio' } as const] : []),
    ];
    const attributes = ['readOnly', ...(spec.attributes ?? [])] as const;
    return mountFdOf(mountDetached('erofs', parameters, attributes));
  } finally {
    names.close();
  }
}

/**
 * Composes layers, detached. Always `redirect_dir=nofollow`, so that a planted redirect in a layer is
 * refused and not followed (`off` still follows), `metacopy=off`, so that a diff stands alone, and
 * `index=off`, so that an upper may be put on other layers later. `work` must be an empty directory beside
 * `upper`. `unsupported`: this kernel takes no layers by descriptor.
 */
export function mountOverlay(spec: OverlaySpec): MountFd {
  checkOverlay(spec);
  const names = openNames();
  try {
    const fixed: FsParameter[] = [
      { kind: 'string', key: 'redirect_dir', value: 'nofollow' },
      { kind: 'string', key: 'metacopy', value: 'off' },
      { kind: 'string', key: 'index', value: 'off' },
    ];
    const layer = (key: string, value: OverlayLayer): FsParameter => {
      if (spec.form === 'descriptor') return { kind: 'fd', key, fd: names.fdOf(value) };
      return { kind: 'string', key, value: names.nameOf(value as BytePath) };
    };
    const parameters = [
      ...fixed,
      ...spec.lower.map((lower) => layer('lowerdir+', lower)),
      ...(spec.upper === undefined ? [] : [layer('upperdir', spec.upper)]),
      ...(spec.work === undefined ? [] : [layer('workdir', spec.work)]),
      ...(spec.volatile ? [{ kind: 'flag', key: 'volatile' } as const] : []),
    ];
    return mountFdOf(mountDetached('overlay', parameters, spec.attributes ?? ['noDev']));
  } catch (thrown) {
    // What Linux before 6.13 says of a descriptor that only names a place.
    if (spec.form !== 'descriptor' || errnoOf(thrown) !== 'EBADF') throw thrown;
    const why = 'this kernel takes overlay layers by path only, not by descriptor';
    throw new DsecError('unsupported', why, { cause: thrown });
  } finally {
    names.close();
  }
}

/**
 * Attaches a detached mount at a path, or onto a directory that the caller has opened (safer: no walk, no
 * race).
 */
export function attach(mount: MountFd, target: BytePath | { readonly fd: number }): void {
  moveMount(mount.fd, target);
}

/** Unmounts what is at a path. `detach` takes it out of the table even while it is in use. */
export function unmount(path: BytePath, options: { readonly detach?: boolean } = {}): void {
  umount(path, options);
}

/** Takes over a mount's descriptor. */
export function mountFdOf(fd: number): MountFd {
  let open = true;
  return {
    fd,
    close() {
      if (!open) return;
      open = false;
      closeSync(fd);
    },
  };
}

function checkOverlay(spec: OverlaySpec): void {
  const refuse = (why: string) => {
    throw new DsecError('invalid-argument', `overlay: ${why}`);
  };
  if (spec.lower.length === 0) refuse('at least one lower layer is needed');
  if (spec.lower.length > OVERLAY_LAYERS_MAX) {
    refuse(`${spec.lower.length} lower layers; the kernel takes ${OVERLAY_LAYERS_MAX}`);
  }
  if ((spec.upper === undefined) !== (spec.work === undefined)) {
    refuse('upper and work come together');
  }
  if (spec.upper === undefined && spec.lower.length < 2) {
    refuse('one lower layer without an upper is that layer: mount it itself');
  }
  if (spec.volatile && spec.upper === undefined) refuse('volatile needs an upper');
}

/**
 * Names for the kernel that live until `close`. A path is used as it is, so that mountinfo stays readable,
 * unless it is too long for fsconfig(2) or holds a backslash, which overlayfs reads as an escape in
 * `upperdir`
 * and `workdir`, though not in `lowerdir+`; then it is opened, and named by its descriptor. Colons and commas
 * are plain bytes in all three.
 */
function openNames() {
  const opened: number[] = [];
  const fdOfPath = (path: BytePath) => {
    const fd = openAt(path, { flags: O_PATH });
    opened.push(fd);
    return fd;
  };
  return {
    fdOf: (layer: OverlayLayer) =>
      typeof layer === 'object' && 'fd' in layer ? layer.fd : fdOfPath(layer),
    nameOf(path: BytePath): BytePath {
      const bytes = pathBytes(path);
      const plain = bytes.length <= FSCONFIG_STRING_BYTES_MAX && !bytes.includes('\\');
      return plain ? path : descriptorPath(fdOfPath(path));
    },
    close() {
      for (const fd of opened.splice(0)) closeSync(fd);
    },
  };
}
