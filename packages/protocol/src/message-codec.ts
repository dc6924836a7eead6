import { DsecError } from '@dsec/std';
import {
  FIELD_HEADER_BYTES,
  LIST_ITEM_HEADER_BYTES,
  type MessageValue,
  numberBytes,
  type WireField,
  type WireMessage,
} from './wire-fields.ts';

type Value = Readonly<Record<string, unknown>>;

/** Encodings of list items that are the same in many messages. */
const kept = new WeakMap<object, { readonly message: WireMessage; readonly bytes: Uint8Array }>();

const LONE_SURROGATE = /\p{Surrogate}/u;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Encodes a message, strictly: a missing, unknown, mistyped or oversized field is `invalid-argument` and
 * names the field, because the value came from our own caller.
 */
export function encodeMessage<M extends WireMessage>(
  message: M,
  value: MessageValue<M>,
): Uint8Array {
  return encodeMessageAfter(0, message as WireMessage, value as Value);
}

/**
 * Returns the same value, whose encoding is kept for every list that holds this very object: for items that
 * are written again and again. It must not change from now on.
 */
export function keepEncoded<M extends WireMessage>(
  message: M,
  value: MessageValue<M>,
): MessageValue<M> {
  kept.set(value, { message, bytes: encodeMessage(message, value) });
  return value;
}

/** As `encodeMessage`, with `headBytes` of room in front, for a header that is written afterwards. */
export function encodeMessageAfter(
  headBytes: number,
  message: WireMessage,
  value: Value,
): Uint8Array {
  const output = Buffer.alloc(headBytes + sizeOfMessage(message, value));
  const end = writeMessage(output, headBytes, message, value);
  if (end !== output.length) throw new DsecError('internal', `${message.name}: size ${end}`);
  return output;
}

/**
 * Decodes a message, strictly: any field that is unknown, doubled, out of order, missing, too long, out
 * of range or not what its kind says is `protocol`. Bytes in the result are views of `input`.
 */
export function decodeMessage<M extends WireMessage>(
  message: M,
  input: Uint8Array,
): MessageValue<M> {
  return readMessage(message as WireMessage, asBuffer(input)) as MessageValue<M>;
}

function asBuffer(input: Uint8Array): Buffer {
  return Buffer.from(input.buffer, input.byteOffset, input.byteLength);
}

function sizeOfMessage(message: WireMessage, value: Value): number {
  let size = 0;
  let known = 0;
  for (const field of message.fields) {
    const part = value[field.name];
    if (part === undefined) {
      if (field.optional) continue;
      throw invalid(message, field, 'is missing');
    }
    known += 1;
    size += FIELD_HEADER_BYTES + sizeOfField(message, field, part);
  }
  let given = 0;
  for (const name in value) if (value[name] !== undefined) given += 1;
  if (given !== known) throw unknownField(message, value);
  return size;
}

function unknownField(message: WireMessage, value: Value): DsecError {
  const names = new Set(message.fields.map((field) => field.name));
  const given = Object.keys(value).filter((name) => value[name] !== undefined);
  const extra = given.find((name) => !names.has(name));
  return new DsecError('invalid-argument', `${message.name} has no field ${extra}`);
}

/** Checks a value against its field as well, so that writing cannot fail. */
function sizeOfField(message: WireMessage, field: WireField, value: unknown): number {
  const width = numberBytes(field.kind);
  if (width !== undefined) {
    const number = numberOf(field, value);
    if (number < field.min || number > field.max || !Number.isInteger(number)) {
      throw invalid(message, field, `must be ${rangeOf(field)}`);
    }
    return width;
  }
  if (field.kind === 'list') return sizeOfList(message, field, value);
  if (field.kind === 'struct') {
    if (typeof value !== 'object' || value === null || field.message === undefined) {
      throw invalid(message, field, 'must be an object');
    }
    return sizeOfMessage(field.message, value as Value);
  }
  return sizeOfBytes(message, field, value);
}

function sizeOfBytes(message: WireMessage, field: WireField, value: unknown): number {
  const isText = field.kind === 'string';
  if (isText ? typeof value !== 'string' : !(value instanceof Uint8Array)) {
    throw invalid(message, field, isText ? 'must be a string' : 'must be bytes');
  }
  const size = isText
    ? Buffer.byteLength(value as string, 'utf8')
    : (value as Uint8Array).byteLength;
  if (size < field.min || size > field.max) {
    throw invalid(message, field, `is ${size} bytes long; must be ${rangeOf(field)}`);
  }
  const hasNul = isText ? (value as string).includes('\0') : (value as Uint8Array).includes(0);
  if (field.kind !== 'bytes' && hasNul) throw invalid(message, field, 'must not contain NUL');
  if (isText && LONE_SURROGATE.test(value as string)) {
    throw invalid(message, field, 'must not contain lone surrogates');
  }
  return size;
}

function sizeOfList(message: WireMessage, field: WireField, value: unknown): number {
  if (!Array.isArray(value)) throw invalid(message, field, 'must be a list');
  if (value.length < field.min || value.length > field.max) {
    throw invalid(message, field, `has ${value.length} items; must have ${rangeOf(field)}`);
  }
  let size = 0;
  for (const item of value) size += LIST_ITEM_HEADER_BYTES + sizeOfItem(message, field, item);
  if (size > field.bytesMax) {
    throw invalid(message, field, `takes ${size} bytes; at most ${field.bytesMax} are allowed`);
  }
  return size;
}

function sizeOfItem(message: WireMessage, field: WireField, item: unknown): number {
  if (field.message === undefined) return sizeOfBytes(message, field.item as WireField, item);
  const known = keptBytes(field.message, item);
  return known === undefined ? sizeOfMessage(field.message, item as Value) : known.byteLength;
}

function keptBytes(message: WireMessage, item: unknown): Uint8Array | undefined {
  const entry = kept.get(item as object);
  return entry?.message === message ? entry.bytes : undefined;
}

function writeMessage(output: Buffer, at: number, message: WireMessage, value: Value): number {
  let offset = at;
  for (const field of message.fields) {
    const part = value[field.name];
    if (part === undefined) continue;
    output.writeUInt16LE(field.tag, offset);
    const start = offset + FIELD_HEADER_BYTES;
    const end = writeField(output, start, field, part);
    output.writeUInt32LE(end - start, offset + 2);
    offset = end;
  }
  return offset;
}

function writeField(output: Buffer, at: number, field: WireField, value: unknown): number {
  switch (field.kind) {
    case 'struct':
      return writeMessage(output, at, field.message as WireMessage, value as Value);
    case 'list':
      return writeList(output, at, field, value as readonly unknown[]);
    case 'string':
      return at + output.write(value as string, at, 'utf8');
    case 'bytes':
    case 'path':
      output.set(value as Uint8Array, at);
      return at + (value as Uint8Array).byteLength;
    default:
      return writeNumber(output, at, field, numberOf(field, value));
  }
}

function writeNumber(output: Buffer, at: number, field: WireField, value: number): number {
  switch (field.kind) {
    case 'u16':
      return output.writeUInt16LE(value, at);
    case 'u32':
      return output.writeUInt32LE(value, at);
    case 'i32':
      return output.writeInt32LE(value, at);
    case 'u64':
    case 'i64': {
      const high = Math.floor(value / 2 ** 32);
      output.writeUInt32LE(value - high * 2 ** 32, at);
      return output.writeInt32LE(high, at + 4);
    }
    default:
      return output.writeUInt8(value, at);
  }
}

function writeList(
  output: Buffer,
  at: number,
  field: WireField,
  items: readonly unknown[],
): number {
  let offset = at;
  for (const item of items) {
    const start = offset + LIST_ITEM_HEADER_BYTES;
    const end = writeItem(output, start, field, item);
    output.writeUInt32LE(end - start, offset);
    offset = end;
  }
  return offset;
}

function writeItem(output: Buffer, at: number, field: WireField, item: unknown): number {
  if (field.message === undefined) return writeField(output, at, field.item as WireField, item);
  const known = keptBytes(field.message, item);
  if (known === undefined) return writeMessage(output, at, field.message, item as Value);
  output.set(known, at);
  return at + known.byteLength;
}

function readMessage(message: WireMessage, input: Buffer): Record<string, unknown> {
  const value: Record<string, unknown> = {};
  let next = 0;
  let offset = 0;
  while (offset < input.length) {
    if (input.length - offset < FIELD_HEADER_BYTES) throw broken(message.name, 'ends in a field');
    const tag = input.readUInt16LE(offset);
    const length = input.readUInt32LE(offset + 2);
    offset += FIELD_HEADER_BYTES;
    if (length > input.length - offset) throw broken(message.name, `field ${tag} is cut off`);
    next = skipAbsent(message, next, tag);
    const field = message.fields[next];
    if (field?.tag !== tag) throw broken(message.name, `field ${tag} is unknown or out of order`);
    value[field.name] = readField(message, field, input.subarray(offset, offset + length));
    offset += length;
    next += 1;
  }
  skipAbsent(message, next, Number.POSITIVE_INFINITY);
  return value;
}

/**
 * Passes over fields below `tag` that the sender left out. Returns the index of the first field not below
 * it.
 */
function skipAbsent(message: WireMessage, from: number, tag: number): number {
  let index = from;
  for (let field = message.fields[index]; field !== undefined && field.tag < tag; ) {
    if (!field.optional) throw broken(message.name, `${field.name} is missing`);
    index += 1;
    field = message.fields[index];
  }
  return index;
}

function readField(message: WireMessage, field: WireField, input: Buffer): unknown {
  const what = `${message.name}.${field.name}`;
  if (numberBytes(field.kind) !== undefined) return readNumber(what, field, input);
  if (input.length > field.bytesMax) throw broken(what, `is ${input.length} bytes long`);
  if (field.kind === 'struct') return readMessage(field.message as WireMessage, input);
  if (field.kind === 'list') return readList(message, field, input);
  return readBytes(what, field, input);
}

function readNumber(what: string, field: WireField, input: Buffer): unknown {
  if (input.length !== numberBytes(field.kind)) throw broken(what, 'has a wrong length');
  const value = rawNumber(field, input);
  if (value < field.min || value > field.max) throw broken(what, `is ${value}`);
  if (field.kind === 'bool') return value === 1;
  return field.kind === 'choice' ? field.values[value] : value;
}

function rawNumber(field: WireField, input: Buffer): number {
  switch (field.kind) {
    case 'u16':
      return input.readUInt16LE(0);
    case 'u32':
      return input.readUInt32LE(0);
    case 'i32':
      return input.readInt32LE(0);
    case 'u64':
      return input.readUInt32LE(4) * 2 ** 32 + input.readUInt32LE(0);
    case 'i64':
      return input.readInt32LE(4) * 2 ** 32 + input.readUInt32LE(0);
    default:
      return input.readUInt8(0);
  }
}

function readBytes(what: string, field: WireField, input: Buffer): Uint8Array | string {
  if (input.length < field.min || input.length > field.max) {
    throw broken(what, `is ${input.length} bytes long`);
  }
  if (field.kind === 'bytes') return input;
  if (input.includes(0)) throw broken(what, 'contains NUL');
  if (field.kind === 'path') return input;
  try {
    return utf8.decode(input);
  } catch (error) {
    throw new DsecError('protocol', `${what} is not UTF-8`, { cause: error });
  }
}

function readList(message: WireMessage, field: WireField, input: Buffer): unknown[] {
  const what = `${message.name}.${field.name}`;
  const items: unknown[] = [];
  let offset = 0;
  while (offset < input.length) {
    if (items.length === field.max) throw broken(what, 'has too many items');
    if (input.length - offset < LIST_ITEM_HEADER_BYTES) throw broken(what, 'ends in an item');
    const length = input.readUInt32LE(offset);
    offset += LIST_ITEM_HEADER_BYTES;
    if (length > input.length - offset) throw broken(what, 'has an item that is cut off');
    const item = input.subarray(offset, offset + length);
    items.push(
      field.message === undefined
        ? readBytes(what, field.item as WireField, item)
        : readMessage(field.message, item),
    );
    offset += length;
  }
  if (items.length < field.min) throw broken(what, 'has too few items');
  return items;
}

function numberOf(field: WireField, value: unknown): number {
  if (field.kind === 'bool') return value === true ? 1 : value === false ? 0 : Number.NaN;
  if (field.kind === 'choice') return field.values.indexOf(value as string);
  return typeof value === 'number' ? value : Number.NaN;
}

function rangeOf(field: WireField): string {
  if (field.kind === 'bool') return 'true or false';
  if (field.kind === 'choice') return field.values.join(' or ');
  return field.min === field.max ? `${field.max}` : `${field.min} to ${field.max}`;
}

function invalid(message: WireMessage, field: WireField, problem: string): DsecError {
  const details = { field: field.name };
  return new DsecError('invalid-argument', `${message.name}: ${field.name} ${problem}`, {
    details,
  });
}

function broken(what: string, problem: string): DsecError {
  return new DsecError('protocol', `${what} ${problem}`);
}
