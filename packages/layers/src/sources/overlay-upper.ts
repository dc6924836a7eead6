import type { ByteString } from '@dsec/erofs';
import { DsecError } from '@dsec/std';
import { shown } from './member-path.ts';

/** Which attributes an overlay keeps its marks in: `user` when it is mounted with `userxattr`. */
export type OverlayXattrs = 'trusted' | 'user';

/** Marks that make an upper entry depend on one exact lower tree, and how to do without them. */
const DEPENDENT_MARKS: Readonly<Record<string, string>> = {
  redirect: 'names the lower path it was renamed from (mount with redirect_dir=nofollow)',
  metacopy: 'has its content only in a lower layer (mount with metacopy=off)',
  whiteout: 'is a whiteout in the form of a file, which the kernel never writes',
};

/**
 * Takes overlayfs's own marks out of an upper entry's attributes. Returns whether the entry is an opaque
 * directory. What records only where a file came from (`origin`, `impure`, `nlink`, `uuid`, …) is dropped:
 * it means something in that one mount. What would make the layer wrong anywhere else is `import-invalid`.
 */
export function takeOverlayMarks(
  path: ByteString,
  xattrs: Map<ByteString, Uint8Array>,
  namespace: OverlayXattrs,
): { opaque: boolean } {
  const prefix = `${namespace}.overlay.`;
  let opaque = false;
  for (const [name, value] of xattrs) {
    if (!name.startsWith(prefix)) continue;
    xattrs.delete(name);
    const mark = name.slice(prefix.length);
    if (mark === 'opaque') {
      if (Buffer.from(value).toString('latin1') !== 'y') {
        throw invalid(path, 'is opaque in a form that the kernel never writes');
      }
      opaque = true;
    }
    const why = Object.hasOwn(DEPENDENT_MARKS, mark) ? DEPENDENT_MARKS[mark] : undefined;
    if (why !== undefined) throw invalid(path, why);
  }
  return { opaque };
}

function invalid(path: ByteString, why: string): DsecError {
  return new DsecError('import-invalid', `${shown(path)} in the overlay's upper directory ${why}`);
}
