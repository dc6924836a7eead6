/**
 * How a frame's fields are described. A message is a closed TypeBox object whose properties carry a `tag`
 * and a wire kind; the TypeScript codec, the C header and the documentation of the frames all read the same
 * description.
 *
 * On the wire a message is a run of fields in strictly ascending order of their tags, so each message has
 * exactly one encoding. A field is: tag u16, length u32, value, little-endian. The length is kept even
 * where the kind fixes it, because it lets one loop check bounds before it looks at kinds. A list is a run
 * of: length u32, item.
 */
import type { Static, TObject, TProperties, TSchema } from 'typebox';
import Type from 'typebox';

export const FIELD_HEADER_BYTES = 6;
export const LIST_ITEM_HEADER_BYTES = 4;

/**
 * `string` is UTF-8 without NUL; `path` is any bytes without NUL, as Linux has them in names and
 * arguments; `bytes` is any bytes. `choice` is a u8 that counts in the field's `values`; `bool` is a u8 of
 * 0 or 1. A `u64` or `i64` is at most 2^53-1 from zero, so that every number is exact in JavaScript.
 */
export type WireKind =
  | 'u8'
  | 'u16'
  | 'u32'
  | 'u64'
  | 'i32'
  | 'i64'
  | 'bool'
  | 'choice'
  | 'bytes'
  | 'path'
  | 'string'
  | 'struct'
  | 'list';

export interface WireField {
  readonly name: string;
  readonly tag: number;
  readonly kind: WireKind;
  readonly optional: boolean;
  /** Range of the value of a number, of the length in bytes of bytes, or of the number of items of a list. */
  readonly min: number;
  readonly max: number;
  /** Most bytes that the value takes on the wire. */
  readonly bytesMax: number;
  /** Names of a `choice`, by value. */
  readonly values: readonly string[];
  /** What a `struct` or a list of messages holds. */
  readonly message: WireMessage | undefined;
  /** What a list of plain items holds. */
  readonly item: WireField | undefined;
}

export interface WireMessage<Properties extends TProperties = TProperties> {
  readonly name: string;
  readonly schema: TObject<Properties>;
  /** In ascending order of their tags. */
  readonly fields: readonly WireField[];
  /** Most bytes of one encoding. */
  readonly bytesMax: number;
}

/** The record that a message decodes to and is encoded from. */
export type MessageValue<M> = M extends WireMessage<infer P> ? Static<TObject<P>> : never;

interface Range {
  readonly minimum?: number;
  readonly maximum?: number;
}

interface Lengths {
  readonly bytesMin?: number;
  readonly bytesMax: number;
}

const integer =
  (kind: WireKind, low: number, high: number) =>
  (tag: number, range: Range = {}) =>
    Type.Integer({ minimum: low, maximum: high, ...range, wire: { kind, tag } });

export const u8 = integer('u8', 0, 0xff);
export const u16 = integer('u16', 0, 0xffff);
export const u32 = integer('u32', 0, 0xffffffff);
export const u64 = integer('u64', 0, Number.MAX_SAFE_INTEGER);
export const i32 = integer('i32', -0x80000000, 0x7fffffff);

export const i64 = integer('i64', Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);

export const bool = (tag: number) => Type.Boolean({ wire: { kind: 'bool', tag } });

export const choice = <const Values extends string[]>(tag: number, values: readonly [...Values]) =>
  Type.Enum(values, { wire: { kind: 'choice', tag } });

export const bytes = (tag: number, lengths: Lengths) =>
  Type.Unsafe<Uint8Array>({ wire: { kind: 'bytes', tag, ...lengths } });

export const path = (tag: number, lengths: Lengths) =>
  Type.Unsafe<Uint8Array>({ wire: { kind: 'path', tag, ...lengths } });

/** `bytesMax` counts UTF-8 bytes. */
export const string = (tag: number, lengths: Lengths) =>
  Type.String({ maxLength: lengths.bytesMax, wire: { kind: 'string', tag, ...lengths } });

export const struct = <P extends TProperties>(tag: number, message: WireMessage<P>) =>
  Type.Unsafe<Static<TObject<P>>>({ wire: { kind: 'struct', tag, message } });

interface ListLimits {
  readonly itemsMin?: number;
  readonly itemsMax: number;
  /** Most bytes of all items together, each with its length. */
  readonly bytesMax: number;
}

export const listOf = <P extends TProperties>(
  tag: number,
  message: WireMessage<P>,
  limits: ListLimits,
) => Type.Unsafe<Static<TObject<P>>[]>({ wire: { kind: 'list', tag, message, ...limits } });

export const pathList = (tag: number, limits: ListLimits & { readonly itemBytesMax: number }) =>
  Type.Unsafe<Uint8Array[]>({ wire: { kind: 'list', tag, ...limits } });

/** A field that may be absent. */
export const optional = Type.Optional;

/** Describes a message. Throws on a tag that is used twice or is not 1 to 65,535. */
export function message<P extends TProperties>(name: string, properties: P): WireMessage<P> {
  const schema = Type.Object(properties, { additionalProperties: false });
  const fields = Object.entries(properties)
    .map(([field, property]) => describeField(field, property))
    .sort((a, b) => a.tag - b.tag);
  for (const [i, field] of fields.entries()) {
    const inOrder = field.tag > (fields[i - 1]?.tag ?? 0);
    if (!inOrder || !Number.isInteger(field.tag) || field.tag > 0xffff) {
      throw new TypeError(`${name}.${field.name}: the tag ${field.tag} is taken or out of range`);
    }
  }
  const bytesMax = fields.reduce((sum, field) => sum + FIELD_HEADER_BYTES + field.bytesMax, 0);
  return { name, schema, fields, bytesMax };
}

interface WireOptions {
  readonly kind: WireKind;
  readonly tag: number;
  readonly bytesMin?: number;
  readonly bytesMax?: number;
  readonly itemsMin?: number;
  readonly itemsMax?: number;
  readonly itemBytesMax?: number;
  readonly message?: WireMessage;
}

const NUMBER_BYTES: Partial<Record<WireKind, number>> = {
  u8: 1,
  bool: 1,
  choice: 1,
  u16: 2,
  u32: 4,
  i32: 4,
  u64: 8,
  i64: 8,
};

/** Width of the value of a number kind, undefined for kinds of any length. */
export function numberBytes(kind: WireKind): number | undefined {
  return NUMBER_BYTES[kind];
}

function describeField(name: string, property: TSchema): WireField {
  const source = property as TSchema & {
    readonly wire?: WireOptions;
    readonly minimum?: number;
    readonly maximum?: number;
    readonly enum?: readonly string[];
  };
  const wire = source.wire;
  if (wire === undefined) throw new TypeError(`${name} has no wire kind`);
  const base = {
    name,
    tag: wire.tag,
    kind: wire.kind,
    optional: Type.IsOptional(property),
    values: source.enum ?? [],
    message: wire.message,
    item: undefined,
  };
  const width = numberBytes(wire.kind);
  if (width !== undefined) {
    const top = wire.kind === 'bool' ? 1 : base.values.length - 1;
    return { ...base, min: source.minimum ?? 0, max: source.maximum ?? top, bytesMax: width };
  }
  if (wire.kind === 'list') {
    const bytesMax = wire.bytesMax ?? 0;
    const item = wire.message === undefined ? plainItem(name, wire.itemBytesMax ?? 0) : undefined;
    return { ...base, item, min: wire.itemsMin ?? 0, max: wire.itemsMax ?? 0, bytesMax };
  }
  const bytesMax = wire.message?.bytesMax ?? wire.bytesMax ?? 0;
  return { ...base, min: wire.bytesMin ?? 0, max: bytesMax, bytesMax };
}

function plainItem(name: string, bytesMax: number): WireField {
  const shape = { name: `${name} item`, tag: 0, kind: 'path', optional: false } as const;
  return {
    ...shape,
    min: 0,
    max: bytesMax,
    bytesMax,
    values: [],
    message: undefined,
    item: undefined,
  };
}
