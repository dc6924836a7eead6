import type { AnyFrame, FrameProtocol, WireField, WireMessage } from '@dsec/protocol';
import fc, { type Arbitrary } from 'fast-check';

/**
 * Any valid frame of a protocol, drawn from the same tables that the codec uses, with lengths up to
 * `bytesMax`.
 */
export function anyFrameOf(protocol: FrameProtocol, bytesMax: number): Arbitrary<AnyFrame> {
  const frames = Object.entries(protocol.frames).map(([type, definition]) => {
    const stream =
      definition.scope === 'connection' ? fc.constant(0) : fc.integer({ min: 1, max: 2 ** 32 - 1 });
    const envelope = {
      type: fc.constant(type),
      stream,
      epoch: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
      offset: fc.maxSafeNat(),
    };
    if (definition.message !== undefined) {
      return fc.record({ ...envelope, fields: anyMessage(definition.message, bytesMax) });
    }
    return fc.oneof(
      fc.record({ ...envelope, data: anyBytes(1, bytesMax), end: fc.boolean() }),
      fc.record({ ...envelope, data: fc.constant(new Uint8Array()), end: fc.constant(true) }),
    );
  });
  return fc.oneof(...frames);
}

function anyMessage(message: WireMessage, bytesMax: number): Arbitrary<Record<string, unknown>> {
  const fields = Object.fromEntries(message.fields.map((f) => [f.name, anyField(f, bytesMax)]));
  const required = message.fields.filter((field) => !field.optional).map((field) => field.name);
  return fc.record(fields, { requiredKeys: required });
}

function anyField(field: WireField, bytesMax: number): Arbitrary<unknown> {
  const lengthMax = Math.max(field.min, Math.min(field.max, bytesMax));
  switch (field.kind) {
    case 'bool':
      return fc.boolean();
    case 'choice':
      return fc.constantFrom(...field.values);
    case 'struct':
      return anyMessage(field.message as WireMessage, bytesMax);
    case 'list':
      return anyList(field, bytesMax);
    case 'bytes':
      return anyBytes(field.min, lengthMax);
    case 'path':
      return anyBytes(field.min, lengthMax, 1);
    case 'string':
      return anyText(field.min, lengthMax);
    default:
      return fc.oneof(
        fc.constantFrom(field.min, field.max),
        fc.maxSafeInteger().map((n) => Math.min(field.max, Math.max(field.min, n))),
      );
  }
}

function anyList(field: WireField, bytesMax: number): Arbitrary<unknown[]> {
  const item: Arbitrary<unknown> =
    field.message === undefined
      ? anyBytes(0, Math.min(16, (field.item as WireField).max), 1)
      : anyMessage(field.message, Math.min(16, bytesMax));
  return fc.array(item, { minLength: field.min, maxLength: Math.min(field.max, 3) });
}

function anyBytes(minLength: number, maxLength: number, least = 0): Arbitrary<Uint8Array> {
  return fc.array(fc.integer({ min: least, max: 255 }), { minLength, maxLength }).map((bytes) => {
    return Uint8Array.from(bytes);
  });
}

/** Text of every width, cut to the length in bytes that the field allows. */
function anyText(bytesMin: number, bytesMax: number): Arbitrary<string> {
  return fc.string({ unit: 'binary', maxLength: bytesMax }).map((text) => {
    let cut = '';
    for (const character of text.replaceAll('\0', '')) {
      if (Buffer.byteLength(cut + character) > bytesMax) break;
      cut += character;
    }
    return cut + 'a'.repeat(Math.max(0, bytesMin - Buffer.byteLength(cut)));
  });
}
