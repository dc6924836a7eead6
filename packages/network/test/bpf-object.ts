/** Builds objects as clang does, so that tests can damage them in every place. */
export interface ObjectParts {
  readonly sections: readonly ObjectSection[];
  readonly symbols: readonly ObjectSymbol[];
}

export interface ObjectSection {
  readonly name: string;
  readonly type: number;
  readonly flags?: number;
  readonly link?: number;
  readonly info?: number;
  readonly bytes: Buffer;
}

export interface ObjectSymbol {
  readonly name: string;
  readonly section: number;
  readonly value: number;
}

const [PROGBITS, SYMTAB, STRTAB, REL] = [1, 2, 3, 9];

/** Numbers of 32 bits. */
export function words(...values: number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  for (const [index, value] of values.entries()) bytes.writeUInt32LE(value, 4 * index);
  return bytes;
}

/** `r1 = map; r0 = 0; exit`. */
export const PROGRAM = Buffer.from(
  '1801000000000000' + '0000000000000000' + 'b700000000000000' + '9500000000000000',
  'hex',
);

/** A relocation of the instruction at `offset` to a symbol. */
export function relocation(offset: number, symbol: number, type = 1): Buffer {
  return Buffer.concat([words(offset, 0), words(type, symbol)]);
}

/** One map, one program that uses it. Sections 1 to 4 are as listed; the tables come behind them. */
export function smallObject(): ObjectParts {
  return {
    sections: [
      { name: 'cgroup/connect4', type: PROGBITS, flags: 6, bytes: PROGRAM },
      { name: '.relcgroup/connect4', type: REL, link: 5, info: 1, bytes: relocation(0, 1) },
      { name: 'maps', type: PROGBITS, flags: 3, bytes: words(1, 4, 8, 16, 1) },
      { name: 'license', type: PROGBITS, flags: 3, bytes: Buffer.from('GPL\0') },
    ],
    symbols: [
      { name: '', section: 0, value: 0 },
      { name: 'things', section: 3, value: 0 },
      { name: 'connect4', section: 1, value: 0 },
    ],
  };
}

function strings(texts: readonly string[]): { bytes: Buffer; at: (text: string) => number } {
  const bytes = Buffer.from(`\0${texts.join('\0')}\0`, 'latin1');
  return { bytes, at: (text) => (text === '' ? 0 : bytes.indexOf(`\0${text}\0`) + 1) };
}

export function writeObject({ sections, symbols }: ObjectParts): Buffer {
  const symbolNames = strings(symbols.map(({ name }) => name));
  const table = symbols.map(({ name, section, value }) => {
    const entry = Buffer.alloc(24);
    entry.writeUInt32LE(symbolNames.at(name), 0);
    entry.writeUInt16LE(section, 6);
    entry.writeBigUInt64LE(BigInt(value), 8);
    return entry;
  });
  const first = sections.length + 1;
  const tables: ObjectSection[] = [
    { name: '.symtab', type: SYMTAB, link: first + 1, bytes: Buffer.concat(table) },
    { name: '.strtab', type: STRTAB, bytes: symbolNames.bytes },
  ];
  const names = strings([...sections, ...tables].map(({ name }) => name).concat('.shstrtab'));
  const all: ObjectSection[] = [
    { name: '', type: 0, bytes: Buffer.alloc(0) },
    ...sections,
    ...tables,
    { name: '.shstrtab', type: STRTAB, bytes: names.bytes },
  ];
  let offset = 64;
  const headers = all.map((section) => {
    const header = Buffer.alloc(64);
    header.writeUInt32LE(names.at(section.name), 0);
    header.writeUInt32LE(section.type, 4);
    header.writeBigUInt64LE(BigInt(section.flags ?? 0), 8);
    header.writeBigUInt64LE(BigInt(offset), 24);
    header.writeBigUInt64LE(BigInt(section.bytes.length), 32);
    header.writeUInt32LE(section.link ?? 0, 40);
    header.writeUInt32LE(section.info ?? 0, 44);
    offset += section.bytes.length;
    return header;
  });
  const head = Buffer.alloc(64);
  Buffer.from('7f454c460201010000000000000000000100f700', 'hex').copy(head);
  head.writeBigUInt64LE(BigInt(offset), 40);
  head.writeUInt16LE(64, 58);
  head.writeUInt16LE(all.length, 60);
  head.writeUInt16LE(all.length - 1, 62);
  return Buffer.concat([head, ...all.map(({ bytes }) => bytes), ...headers]);
}
