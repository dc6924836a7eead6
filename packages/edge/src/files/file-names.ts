import { posix } from 'node:path';
import type { FileAttributesFields, FileEntry } from '@dsec/protocol';
import { type ByteText, bytesOfPath, PATH_BYTES_MAX, textOfBytes } from '@dsec/protocol';
import { DsecError } from '@dsec/std';

const SLASH = 0x2f;

/** A path of a request as the agent takes it: relative ones start at `cwd`. Throws `invalid-argument`. */
export function pathOf(path: ByteText, what: string, cwd: string): Buffer {
  const bytes = bytesOfPath(path, what, PATH_BYTES_MAX);
  if (bytes[0] === SLASH) return bytes;
  const whole = Buffer.concat([Buffer.from(cwd.endsWith('/') ? cwd : `${cwd}/`), bytes]);
  if (whole.length <= PATH_BYTES_MAX) return whole;
  throw new DsecError('invalid-argument', `${what} is too long below the working directory`, {
    details: { field: what },
  });
}

const RESERVED = Buffer.from('/.dsec');

/**
 * As `pathOf`, of something to be written: `/.dsec` is the platform's own. What a link or a mount makes of
 * another path is the sandbox's affair: the mounts there are read-only, and nothing below is ever taken.
 */
export function pathToWrite(path: ByteText, what: string, cwd: string): Buffer {
  const bytes = pathOf(path, what, cwd);
  const plain = Buffer.from(posix.normalize(bytes.toString('latin1')), 'latin1');
  const isBelow = plain.subarray(0, RESERVED.length).equals(RESERVED);
  if (!isBelow || ![undefined, SLASH].includes(plain[RESERVED.length])) return bytes;
  throw new DsecError('permission-denied', `${what}: /.dsec is the platform's own`, {
    details: { field: what, about: 'path' },
  });
}

/** What the agent says of a file as the API shows it. */
export function entryOf(attributes: FileAttributesFields): FileEntry {
  const { name, symlinkTarget, ...numbers } = attributes;
  const shown = textOfBytes(name);
  const target = symlinkTarget === undefined ? undefined : textOfBytes(symlinkTarget);
  return {
    ...numbers,
    name: shown.text,
    ...(shown.base64 === undefined ? {} : { nameBase64: shown.base64 }),
    ...(target === undefined ? {} : { symlinkTarget: target.text }),
    ...(target?.base64 === undefined ? {} : { symlinkTargetBase64: target.base64 }),
  };
}
