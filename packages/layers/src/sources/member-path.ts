import type { ByteString } from '@dsec/erofs';
import { DsecError } from '@dsec/std';

const SHOWN_BYTES_MAX = 200;
/** A part that is empty, `.` or `..`. */
const ODD_PART = /(?:^|\/)\.{0,2}(?:\/|$)/;

/**
 * The path of an archive member or hard link target in the builder's form: leading and doubled slashes and
 * `.` parts go, as GNU tar and docker drop them. A `..` part is `import-invalid`: none is in an archive of a
 * file tree, and tools disagree on what it means. What else a path may not be, the builder says.
 */
export function memberPath(name: ByteString, pathBytesMax: number): ByteString {
  if (name.length > pathBytesMax) {
    throw new DsecError('import-limit', `a path is longer than ${pathBytesMax} bytes`);
  }
  if (!ODD_PART.test(name)) return name;
  const parts = name.split('/').filter((part) => part !== '' && part !== '.');
  if (parts.includes('..')) {
    throw new DsecError('import-invalid', `the path ${shown(name)} has a ".." part`);
  }
  return parts.join('/');
}

/** A path for a message: quoted, only printable ASCII as it is, cut after 200 bytes. */
export function shown(path: ByteString): string {
  const cut = path.length > SHOWN_BYTES_MAX ? `${path.slice(0, SHOWN_BYTES_MAX)}…` : path;
  const escaped = (c: string) => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`;
  return `"${cut.replace(/[^ -~…]|["\\]/g, escaped)}"`;
}
