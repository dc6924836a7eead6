import { assert } from '@dsec/std';
import { type ByteSource, truncated } from '../../src/sources/byte-source.ts';

/** Encodes archives by hand, so that tests can make what no tool would. */

const BLOCK_BYTES = 512;

export interface HeaderFields {
  readonly name: string;
  readonly type?: string;
  readonly size?: number | Buffer;
  readonly mode?: number;
  readonly uid?: number | Buffer;
  readonly gid?: number | Buffer;
  readonly mtime?: number | Buffer;
  readonly link?: string;
  readonly magic?: 'ustar' | 'gnu' | 'v7' | 'star';
  readonly prefix?: string;
  readonly major?: number | Buffer;
  readonly minor?: number | Buffer;
  /** Written over the block before the checksum is taken. */
  readonly patches?: readonly (readonly [offset: number, bytes: string | Buffer])[];
  /** Written instead of the right one. */
  readonly checksum?: number;
}

const MAGIC = { ustar: 'ustar\x0000', gnu: 'ustar  \0', v7: '', star: 'ustar\x0000' } as const;

export function tarHeader(fields: HeaderFields): Buffer {
  const { name, type = '0', mode = 0o644, link = '', magic = 'ustar', prefix = '' } = fields;
  const block = Buffer.alloc(BLOCK_BYTES);
  block.write(name.slice(0, 100), 0, 'latin1');
  putNumber(block, 100, 8, mode);
  putNumber(block, 108, 8, fields.uid ?? 0);
  putNumber(block, 116, 8, fields.gid ?? 0);
  putNumber(block, 124, 12, fields.size ?? 0);
  putNumber(block, 136, 12, fields.mtime ?? 0);
  block.write(type, 156, 'latin1');
  block.write(link.slice(0, 100), 157, 'latin1');
  block.write(MAGIC[magic], 257, 'latin1');
  if (fields.major !== undefined) putNumber(block, 329, 8, fields.major);
  if (fields.minor !== undefined) putNumber(block, 337, 8, fields.minor);
  block.write(prefix, 345, 'latin1');
  if (magic === 'star') block.write('tar\0', 508, 'latin1');
  for (const [offset, bytes] of fields.patches ?? []) {
    block.set(Buffer.from(bytes as string, 'latin1'), offset);
  }
  return withChecksum(block, fields.checksum);
}

/** Sets the checksum field, to what is right unless told otherwise. */
export function withChecksum(block: Buffer, checksum?: number): Buffer {
  block.fill(0x20, 148, 156);
  let sum = 0;
  for (let i = 0; i < BLOCK_BYTES; i += 1) sum += block[i] ?? 0;
  block.write(`${(checksum ?? sum).toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return block;
}

function putNumber(block: Buffer, offset: number, length: number, value: number | Buffer): void {
  if (typeof value === 'number') {
    block.write(value.toString(8).padStart(length - 1, '0'), offset, 'latin1');
  } else {
    block.set(value, offset);
  }
}

/** GNU's form of numbers that octal digits have no room for, negative ones too. */
export function base256(value: bigint, length: number): Buffer {
  const field = Buffer.alloc(length);
  let rest = value;
  for (let i = length - 1; i >= 0; i -= 1) {
    field[i] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  field[0] = (field[0] ?? 0) | 0x80;
  return field;
}

export function padded(content: Buffer | string): Buffer {
  const bytes = typeof content === 'string' ? Buffer.from(content, 'latin1') : content;
  const rest = (BLOCK_BYTES - (bytes.length % BLOCK_BYTES)) % BLOCK_BYTES;
  return Buffer.concat([bytes, Buffer.alloc(rest)]);
}

/** A header and its content, the size set to fit. */
export function tarMember(fields: HeaderFields, content: Buffer | string = ''): Buffer {
  const body = padded(content);
  return Buffer.concat([tarHeader({ size: content.length, ...fields }), body]);
}

export function paxRecord(key: string, value: string | Buffer): Buffer {
  const payload = Buffer.concat([
    Buffer.from(` ${key}=`, 'latin1'),
    Buffer.from(value as string, 'latin1'),
    Buffer.from('\n'),
  ]);
  let length = payload.length + 1;
  while (String(length).length + payload.length !== length) length += 1;
  return Buffer.concat([Buffer.from(String(length)), payload]);
}

export type PaxRecords = readonly (readonly [key: string, value: string | Buffer])[];

export function paxBody(records: PaxRecords): Buffer {
  return Buffer.concat(records.map(([key, value]) => paxRecord(key, value)));
}

export function paxHeader(records: PaxRecords, type = 'x'): Buffer {
  return tarMember({ name: 'PaxHeaders/x', type }, paxBody(records));
}

/** GNU's long name (`L`) or link target (`K`) for the member after it. */
export function gnuLong(type: 'L' | 'K', text: string): Buffer {
  return tarMember({ name: '././@LongLink', type, magic: 'gnu' }, `${text}\0`);
}

export const TAR_END: Buffer = Buffer.alloc(2 * BLOCK_BYTES);

export function tarOf(...parts: readonly Buffer[]): Buffer {
  return Buffer.concat([...parts, TAR_END]);
}

/** A source over bytes in memory that gives at most `piece` of them at once. */
export function memorySource(bytes: Buffer, piece = 1 << 20): ByteSource {
  let at = 0;
  let to = 0;
  return {
    get position() {
      return at;
    },
    get buffered() {
      return to - at;
    },
    async fill(count) {
      to = Math.min(bytes.length, Math.max(to, at + Math.max(count, piece)));
      return to - at;
    },
    take(count) {
      assert(count <= to - at, 'take within what is buffered');
      at += count;
      return bytes.subarray(at - count, at);
    },
    peek(count) {
      assert(count <= to - at, 'peek within what is buffered');
      return bytes.subarray(at, at + count);
    },
    async skip(count) {
      if (count > bytes.length - at) throw truncated(bytes.length);
      at += count;
      to = Math.max(at, to);
    },
    async close() {},
  };
}
