/** What `dsec cp` copies from and to. */
import { readFileSync } from 'node:fs';
import { DsecError } from '@dsec/std';

export type Place =
  | { readonly kind: 'sandbox'; readonly sandboxId: string; readonly path: Buffer }
  | { readonly kind: 'local'; readonly path: Buffer }
  /** Standard input or output. */
  | { readonly kind: 'stream' };

const IN_SANDBOX = /^(sb-[a-z0-9]+-[a-z0-9]+-[a-z0-9]+):(.*)$/s;

/** `sb-…:/path` in a sandbox, `-` for a standard stream, else a local path. */
export function placeOf(argument: Buffer): Place {
  const text = argument.toString('latin1');
  if (text === '-') return { kind: 'stream' };
  const [, sandboxId, path] = IN_SANDBOX.exec(text) ?? [];
  if (sandboxId !== undefined) {
    if (path === '') throw new DsecError('invalid-argument', `${text} names no path: ${text}/path`);
    return { kind: 'sandbox', sandboxId, path: Buffer.from(path ?? '', 'latin1') };
  }
  if (text === '') throw new DsecError('invalid-argument', 'a path is empty');
  return { kind: 'local', path: argument };
}

/**
 * Arguments as the bytes that they are: Node gives those that are no UTF-8 with U+FFFD in them, and names of
 * files may be such.
 */
export function argumentBytes(args: readonly string[]): Buffer[] {
  if (!args.some((argument) => argument.includes('\uFFFD'))) return args.map((a) => Buffer.from(a));
  const words = splitAtNul(readFileSync('/proc/self/cmdline'));
  return args.map((argument) => {
    const index = words.findIndex((word) => word.toString('utf8') === argument);
    return words.splice(index, index === -1 ? 0 : 1)[0] ?? Buffer.from(argument);
  });
}

function splitAtNul(bytes: Buffer): Buffer[] {
  const words: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.indexOf(0, at);
    const stop = end === -1 ? bytes.length : end;
    words.push(bytes.subarray(at, stop));
    at = stop + 1;
  }
  return words;
}

/** The last name of a path, which must have one. */
export function baseName(path: Buffer): Buffer {
  const text = path.toString('latin1').replace(/\/+$/, '');
  const name = text.slice(text.lastIndexOf('/') + 1);
  if (name === '' || name === '.' || name === '..') {
    throw new DsecError('invalid-argument', `${show(path)} has no name of its own to copy to`);
  }
  return Buffer.from(name, 'latin1');
}

export function joinPath(directory: Buffer, name: Buffer): Buffer {
  const isOpen = directory.length === 0 || directory.at(-1) === SLASH;
  return Buffer.concat(isOpen ? [directory, name] : [directory, Buffer.of(SLASH), name]);
}

const SLASH = 0x2f;

export const show = (path: Uint8Array) => Buffer.from(path).toString('utf8');
