export interface HelloFields {
  readonly serverName?: string;
  readonly protocols?: readonly string[];
  readonly extensions?: readonly (readonly [number, Buffer])[];
  /** Bytes of the message in each record; absent: all in one. */
  readonly recordBytes?: number;
}

const number = (value: number, bytes: number) => {
  const buffer = Buffer.alloc(bytes);
  buffer.writeUIntBE(value, 0, bytes);
  return buffer;
};
const vector = (countBytes: number, ...parts: readonly Buffer[]) => {
  const content = Buffer.concat(parts);
  return Buffer.concat([number(content.length, countBytes), content]);
};

/** A ClientHello in records, as a client of TLS 1.3 would send it. */
export function helloOf(fields: HelloFields): Buffer {
  const extensions: (readonly [number, Buffer])[] = [...(fields.extensions ?? [])];
  if (fields.serverName !== undefined) {
    const name = vector(2, Buffer.from(fields.serverName, 'latin1'));
    extensions.push([0, vector(2, Buffer.from([0]), name)]);
  }
  if (fields.protocols !== undefined) {
    extensions.push([16, vector(2, ...fields.protocols.map((p) => vector(1, Buffer.from(p))))]);
  }
  const body = Buffer.concat([
    ...[Buffer.from([3, 3]), Buffer.alloc(32, 7), vector(1, Buffer.alloc(32, 8))],
    ...[vector(2, Buffer.from([0x0a, 0x0a, 0x13, 0x01])), vector(1, Buffer.from([0]))],
    vector(
      2,
      ...extensions.map(([type, data]) => Buffer.concat([number(type, 2), vector(2, data)])),
    ),
  ]);
  const message = Buffer.concat([Buffer.from([1]), vector(3, body)]);
  return recordsOf(message, fields.recordBytes ?? message.length);
}

export function recordsOf(message: Buffer, recordBytes: number): Buffer {
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += recordBytes) {
    records.push(Buffer.from([22, 3, 1]), vector(2, message.subarray(at, at + recordBytes)));
  }
  return Buffer.concat(records);
}
