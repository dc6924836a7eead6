import { DsecError } from '@dsec/std';

/**
 * Reads what clang makes of a BPF program: an ELF file to be linked (`ET_REL`), without type information.
 * Only what our own sources need: maps described in a section `maps`, programs in sections of their own,
 * and references from programs to maps. All else is refused, and every offset is checked, so that a
 * damaged file is an error and never a wrong program.
 */
export interface BpfObject {
  readonly license: string;
  readonly maps: readonly BpfObjectMap[];
  readonly programs: readonly BpfObjectProgram[];
}

/** `struct map_definition` of `native/bpf/policy.h`. */
export interface BpfObjectMap {
  readonly name: string;
  readonly type: number;
  readonly keyBytes: number;
  readonly valueBytes: number;
  readonly entriesMax: number;
  readonly flags: number;
}

export interface BpfObjectProgram {
  /** The name of its section, which says what it is for: `cgroup/connect4`. */
  readonly section: string;
  readonly instructions: Buffer;
  readonly references: readonly MapReference[];
}

export interface MapReference {
  /** Of the instruction that loads the map, in bytes. */
  readonly offset: number;
  readonly map: string;
}

interface Section {
  readonly index: number;
  readonly name: string;
  readonly type: number;
  readonly flags: number;
  readonly bytes: Buffer;
  readonly link: number;
  readonly info: number;
}

interface ElfSymbol {
  readonly name: string;
  readonly section: number;
  readonly value: number;
}

export const OBJECT_BYTES_MAX = 1 << 20;
const SECTIONS_MAX = 128;
const SYMBOLS_MAX = 16_384;
const MAPS_MAX = 64;
const INSTRUCTIONS_MAX = 65_536;
const NAME_BYTES_MAX = 128;

const HEADER_BYTES = 64;
const SECTION_HEADER_BYTES = 64;
const SYMBOL_BYTES = 24;
const RELOCATION_BYTES = 16;
const MAP_BYTES = 20;
const INSTRUCTION_BYTES = 8;

const [SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_NOBITS, SHT_REL] = [1, 2, 3, 4, 8, 9];
const SHF_EXECINSTR = 4;
/** A 64-bit address put into a load of two instructions. */
const R_BPF_64_64 = 1;
/** That load: `BPF_LD | BPF_IMM | BPF_DW`. */
const LOAD_64 = 0x18;

/** `layer-invalid` would speak of a layer: a bad object of the distribution is `data-loss`. */
function damaged(what: string): DsecError {
  return new DsecError('data-loss', `BPF object: ${what}`);
}

/** Throws `data-loss` for everything that is not a whole object of the form above. */
export function parseBpfObject(bytes: Buffer): BpfObject {
  const sections = readSections(bytes);
  const symbols = readSymbols(sections);
  const maps = readMaps(sections, symbols);
  const names = new Map(maps.map(({ at, name }) => [at, name]));
  const programs = sections
    .filter(({ type, flags, bytes: { length } }) => {
      return type === SHT_PROGBITS && (flags & SHF_EXECINSTR) !== 0 && length > 0;
    })
    .map((section) => readProgram(section, sections, symbols, names));
  if (programs.length === 0) throw damaged('no program');
  return {
    license: readLicense(sections),
    maps: maps.map(({ at: _, ...map }) => map),
    programs,
  };
}

function readSections(file: Buffer): Section[] {
  if (file.length > OBJECT_BYTES_MAX) throw damaged('too large');
  if (file.length < HEADER_BYTES) throw damaged('shorter than its header');
  // Magic, 64 bits, little endian, version 1.
  if (file.readUInt32BE(0) !== 0x7f454c46 || file.readUIntBE(4, 3) !== 0x020101) {
    throw damaged('not a little-endian ELF64 file');
  }
  const [ET_REL, EM_BPF] = [1, 247];
  if (file.readUInt16LE(16) !== ET_REL || file.readUInt16LE(18) !== EM_BPF) {
    throw damaged('not a relocatable object for BPF');
  }
  const count = file.readUInt16LE(60);
  if (file.readUInt16LE(58) !== SECTION_HEADER_BYTES || count === 0 || count > SECTIONS_MAX) {
    throw damaged('a table of sections that is not understood');
  }
  const table = slice(file, file.readBigUInt64LE(40), BigInt(count * SECTION_HEADER_BYTES));
  const headers = Array.from({ length: count }, (_, index) =>
    table.subarray(index * SECTION_HEADER_BYTES, (index + 1) * SECTION_HEADER_BYTES),
  );
  const named = headers.map((header, index) => readSection(file, header, index));
  const strings = at(named, file.readUInt16LE(62), 'section names');
  if (strings.type !== SHT_STRTAB) throw damaged('section names that are no strings');
  return named.map((section, index) => {
    const offset = headers[index]?.readUInt32LE(0) ?? 0;
    return { ...section, name: index === 0 ? '' : textAt(strings.bytes, offset) };
  });
}

function readSection(file: Buffer, header: Buffer, index: number): Section {
  const type = header.readUInt32LE(4);
  const isEmpty = type === 0 || type === SHT_NOBITS;
  return {
    index,
    name: '',
    type,
    flags: Number(header.readBigUInt64LE(8) & 0xffffn),
    bytes: isEmpty
      ? Buffer.alloc(0)
      : slice(file, header.readBigUInt64LE(24), header.readBigUInt64LE(32)),
    link: header.readUInt32LE(40),
    info: header.readUInt32LE(44),
  };
}

function readSymbols(sections: readonly Section[]): ElfSymbol[] {
  const tables = sections.filter(({ type }) => type === SHT_SYMTAB);
  const [table] = tables;
  if (table === undefined || tables.length > 1) throw damaged('not one table of symbols');
  const strings = at(sections, table.link, 'symbol names');
  const count = wholeCount(table.bytes, SYMBOL_BYTES, 'symbols');
  if (strings.type !== SHT_STRTAB || count > SYMBOLS_MAX) throw damaged('symbols');
  return Array.from({ length: count }, (_, i) => {
    const entry = table.bytes.subarray(i * SYMBOL_BYTES, (i + 1) * SYMBOL_BYTES);
    return {
      name: textAt(strings.bytes, entry.readUInt32LE(0)),
      section: entry.readUInt16LE(6),
      value: small(entry.readBigUInt64LE(8)),
    };
  });
}

function readMaps(
  sections: readonly Section[],
  symbols: readonly ElfSymbol[],
): (BpfObjectMap & { at: number })[] {
  const section = sections.find(({ name }) => name === 'maps');
  if (section === undefined) return [];
  const count = wholeCount(section.bytes, MAP_BYTES, 'maps');
  if (count > MAPS_MAX) throw damaged('too many maps');
  const found = new Set<string>();
  return Array.from({ length: count }, (_, i) => {
    const offset = i * MAP_BYTES;
    const owners = symbols.filter(
      (symbol) => symbol.section === section.index && symbol.value === offset && symbol.name !== '',
    );
    const name = owners[0]?.name ?? '';
    if (owners.length !== 1 || found.has(name) || !/^[a-z][a-z0-9_]*$/.test(name)) {
      throw damaged('a map without a name of its own');
    }
    found.add(name);
    const field = (index: number) => section.bytes.readUInt32LE(offset + 4 * index);
    return {
      at: offset,
      name,
      type: field(0),
      keyBytes: field(1),
      valueBytes: field(2),
      entriesMax: field(3),
      flags: field(4),
    };
  });
}

function readProgram(
  section: Section,
  sections: readonly Section[],
  symbols: readonly ElfSymbol[],
  maps: ReadonlyMap<number, string>,
): BpfObjectProgram {
  const count = wholeCount(section.bytes, INSTRUCTION_BYTES, 'instructions');
  if (count > INSTRUCTIONS_MAX) throw damaged(`${section.name} is too long`);
  const mapsIndex = sections.find(({ name }) => name === 'maps')?.index;
  const tables = sections.filter(
    ({ type, info }) => (type === SHT_REL || type === SHT_RELA) && info === section.index,
  );
  const references = tables.flatMap((table) => {
    if (table.type !== SHT_REL) throw damaged('relocations with addends');
    const length = wholeCount(table.bytes, RELOCATION_BYTES, 'relocations');
    return Array.from({ length }, (_, i) => {
      const entry = table.bytes.subarray(i * RELOCATION_BYTES, (i + 1) * RELOCATION_BYTES);
      const symbol = at(symbols, entry.readUInt32LE(12), 'symbol of a relocation');
      const map = symbol.section === mapsIndex ? maps.get(symbol.value) : undefined;
      if (entry.readUInt32LE(8) !== R_BPF_64_64 || map === undefined) {
        throw damaged(`${section.name} refers to ${symbol.name}, which is no map`);
      }
      const offset = small(entry.readBigUInt64LE(0));
      checkLoad(section, offset);
      return { offset, map };
    });
  });
  const isOnce = new Set(references.map(({ offset }) => offset)).size === references.length;
  if (!isOnce) throw damaged(`${section.name} is relocated twice in one place`);
  return { section: section.name, instructions: Buffer.from(section.bytes), references };
}

/** The instruction loads 64 bits that are still zero. */
function checkLoad({ name, bytes }: Section, offset: number): void {
  const isInside = offset % INSTRUCTION_BYTES === 0 && offset + 16 <= bytes.length;
  if (!isInside || bytes[offset] !== LOAD_64 || bytes[offset + 8] !== 0) {
    throw damaged(`a relocation of ${name} is not at a load`);
  }
  // No kind of load yet, and no offset into the map.
  if (((bytes[offset + 1] ?? 0) & 0xf0) !== 0 || bytes.readUInt32LE(offset + 4) !== 0) {
    throw damaged(`a relocation of ${name} has an addend`);
  }
}

function readLicense(sections: readonly Section[]): string {
  const section = sections.find(({ name }) => name === 'license');
  return section === undefined ? '' : textAt(section.bytes, 0);
}

function slice(file: Buffer, offset: bigint, length: bigint): Buffer {
  if (offset + length > BigInt(file.length)) throw damaged('a part lies behind its end');
  return file.subarray(Number(offset), Number(offset + length));
}

function wholeCount(bytes: Buffer, each: number, what: string): number {
  if (bytes.length % each !== 0) throw damaged(`${what} of no whole number`);
  return bytes.length / each;
}

function at<Item>(items: readonly Item[], index: number, what: string): Item {
  const item = items[index];
  if (item === undefined) throw damaged(`${what} that do not exist`);
  return item;
}

function small(value: bigint): number {
  if (value > BigInt(OBJECT_BYTES_MAX)) throw damaged('an offset behind its end');
  return Number(value);
}

function textAt(bytes: Buffer, offset: number): string {
  const end = bytes.indexOf(0, offset);
  if (offset >= bytes.length || end < 0 || end - offset > NAME_BYTES_MAX) {
    throw damaged('a name without an end');
  }
  return bytes.toString('latin1', offset, end);
}
