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
