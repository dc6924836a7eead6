/** The few forms of DER (X.690) that our certificates are made of. Only writes; nothing here reads. */
const element = (tag: number, ...parts: readonly Buffer[]): Buffer => {
  const content = Buffer.concat(parts);
  return Buffer.concat([Buffer.from([tag]), lengthOf(content.length), content]);
};

function lengthOf(length: number): Buffer {
  if (length < 128) return Buffer.from([length]);
  const hex = length.toString(16);
  const bytes = Buffer.from(hex.padStart(hex.length + (hex.length % 2), '0'), 'hex');
  return Buffer.concat([Buffer.from([0x80 | bytes.length]), bytes]);
}

/** Base 128, the highest digit first, all but the last with the top bit set. */
function base128(value: number): number[] {
  const digits = [value % 128];
  for (let rest = Math.floor(value / 128); rest > 0; rest = Math.floor(rest / 128)) {
    digits.unshift((rest % 128) | 0x80);
  }
  return digits;
}

export const der = {
  sequence: (...parts: readonly Buffer[]) => element(0x30, ...parts),
  set: (...parts: readonly Buffer[]) => element(0x31, ...parts),
  /** A positive number, whose first byte is below 0x80. */
  integer: (bytes: Buffer) => element(0x02, bytes),
  yes: Buffer.from([0x01, 0x01, 0xff]),
  oid(text: string) {
    const [first = 0, second = 0, ...rest] = text.split('.').map(Number);
    return element(0x06, Buffer.from([first * 40 + second, ...rest.flatMap(base128)]));
  },
  text: (text: string) => element(0x0c, Buffer.from(text)),
  octets: (bytes: Buffer) => element(0x04, bytes),
  bits: (bytes: Buffer, unused = 0) => element(0x03, Buffer.from([unused]), bytes),
  tagged: (tag: number, content: Buffer) => element(0xa0 | tag, content),
  dnsName: (name: string) => element(0x82, Buffer.from(name, 'latin1')),
  /** Two digits of the year until 2049, as RFC 5280 wants it. */
  time(ms: number) {
    const text = new Date(ms).toISOString().replace(/[-:T]|\.\d+/g, '');
    return text < '2050'
      ? element(0x17, Buffer.from(text.slice(2)))
      : element(0x18, Buffer.from(text));
  },
};
