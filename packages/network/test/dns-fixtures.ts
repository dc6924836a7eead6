import type { DnsReply } from '@dsec/network';

/** A query as a resolver would send it. */
export function queryOf(
  name: string,
  type = 1,
  more: { id?: number; edns?: boolean } = {},
): Buffer {
  const { id = 0x1234, edns = false } = more;
  const header = Buffer.from([id >> 8, id & 0xff, 1, 0, 0, 1, 0, 0, 0, 0, 0, edns ? 1 : 0]);
  const labels = name.split('.').map((label) => {
    const bytes = Buffer.from(label, 'latin1');
    return Buffer.concat([Buffer.from([bytes.length]), bytes]);
  });
  const options = edns ? Buffer.from([0, 0, 41, 0x10, 0, 0, 0, 0, 0, 0, 0]) : Buffer.alloc(0);
  return Buffer.concat([header, ...labels, Buffer.from([0, 0, type, 0, 1]), options]);
}

export interface ReadReply {
  readonly id: number;
  readonly code: DnsReply['code'];
  readonly question: Buffer;
  readonly addresses: readonly string[];
  readonly ttls: readonly number[];
  readonly additional: number;
}

/** Reads an answer whose records point to the name of its question. */
export function readReply(bytes: Buffer): ReadReply {
  let at = 12;
  if (bytes.readUInt16BE(4) === 1) {
    while (bytes[at] !== 0) at += 1 + (bytes[at] ?? 0);
    at += 5;
  }
  const question = bytes.subarray(12, at);
  const addresses: string[] = [];
  const ttls: number[] = [];
  for (let left = bytes.readUInt16BE(6); left > 0; left -= 1) {
    ttls.push(bytes.readUInt32BE(at + 6));
    const length = bytes.readUInt16BE(at + 10);
    const data = bytes.subarray(at + 12, at + 12 + length);
    addresses.push(length === 4 ? data.join('.') : data.toString('hex'));
    at += 12 + length;
  }
  return {
    ...{ id: bytes.readUInt16BE(0), code: (bytes.readUInt16BE(2) & 15) as DnsReply['code'] },
    ...{ question, addresses, ttls, additional: bytes.readUInt16BE(10) },
  };
}
