import { DsecError } from '@dsec/std';
import { type ByteSource, readExactly } from './byte-source.ts';
import { type PaxSparse, parsePaxNumber } from './pax.ts';
import { readNumber, TAR_BLOCK_BYTES } from './tar-header.ts';

/** A stretch of a sparse file that is stored; between the pieces, and up to the file's size, are holes. */
export interface SparsePiece {
  readonly offset: number;
  readonly length: number;
}

export interface SparseMap {
  readonly sizeBytes: number;
  readonly pieces: readonly SparsePiece[];
  /** Bytes of the body that hold the pieces, one after another. */
  readonly storedBytes: number;
}

/** GNU tar's older form: four pieces in the header, the rest in blocks of 21 before the body. */
const OLD_PIECES_AT = 386;
const OLD_PIECES = 4;
const OLD_MORE_AT = 482;
const OLD_SIZE = [483, 12] as const;
const BLOCK_PIECES = 21;
const BLOCK_MORE_AT = 504;
const PIECE_BYTES = 24;

/** Collects pieces and refuses what no file can have: pieces out of order, overlapping or past the end. */
function createPieceList(piecesMax: number) {
  const pieces: SparsePiece[] = [];
  let added = 0;
  let end = 0;
  let storedBytes = 0;
  return {
    add(offset: number, length: number) {
      added += 1;
      if (added > piecesMax) {
        throw new DsecError('import-limit', `a sparse member has more than ${piecesMax} pieces`);
      }
      if (offset < end || length < 0 || !Number.isSafeInteger(offset + length)) {
        throw invalid('its pieces overlap or are out of order');
      }
      end = offset + length;
      storedBytes += length;
      // Writers end the list with an empty piece at the end of the file.
      if (length > 0) pieces.push({ offset, length });
    },
    finish(sizeBytes: number, bodyBytes: number): SparseMap {
      if (sizeBytes < end) throw invalid('its pieces reach past its end');
      if (storedBytes !== bodyBytes) throw invalid('its pieces are not as long as its body');
      return { sizeBytes, pieces, storedBytes };
    },
  };
}

/** The map of a member of type `S`. Reads the blocks that continue it from `source`. */
export async function readOldSparse(
  header: Buffer,
  bodyBytes: number,
  source: ByteSource,
  piecesMax: number,
): Promise<SparseMap> {
  const list = createPieceList(piecesMax);
  const sizeBytes = readNumber(header, OLD_SIZE, 'real size');
  addOldPieces(list, header, OLD_PIECES_AT, OLD_PIECES);
  let more = header[OLD_MORE_AT] !== 0;
  while (more) {
    const block = await readExactly(source, TAR_BLOCK_BYTES);
    const added = addOldPieces(list, block, 0, BLOCK_PIECES);
    more = block[BLOCK_MORE_AT] !== 0;
    if (more && added < BLOCK_PIECES) throw invalid('its map has a gap');
  }
  return list.finish(sizeBytes, bodyBytes);
}

function addOldPieces(
  list: ReturnType<typeof createPieceList>,
  block: Buffer,
  start: number,
  count: number,
): number {
  for (let i = 0; i < count; i += 1) {
    const at = start + i * PIECE_BYTES;
    // A slot that was never written ends the list.
    if (block[at + 12] === 0) return i;
    const offset = readNumber(block, [at, 12], 'sparse offset');
    list.add(offset, readNumber(block, [at + 12, 12], 'sparse length'));
  }
  return count;
}

/**
 * The map that extended headers announce, in version 0.0 (a record for each number), 0.1 (one list) or 1.0
 * (decimal lines at the start of the body, up to a block's end); `undefined` when they announce none. For 1.0
 * the map's blocks are read from `source`.
 */
export async function readPaxSparse(
  sparse: PaxSparse,
  bodyBytes: number,
  source: ByteSource,
  piecesMax: number,
): Promise<SparseMap | undefined> {
  const version = `${sparse.major ?? 0}.${sparse.minor ?? 0}`;
  if (version === '1.0') return readMapBlocks(sizeOf(sparse), bodyBytes, source, piecesMax);
  if (version !== '0.0' && version !== '0.1') throw invalid('its version is unknown');
  // Without pieces it is a plain file, whatever else the records say; a hole alone is written as an empty
  // piece.
  if (sparse.map === undefined && sparse.pairs.length === 0) return undefined;
  const numbers =
    sparse.map === undefined ? sparse.pairs : sparse.map.split(',').map(parsePaxNumber);
  if (numbers.length % 2 !== 0) throw invalid('a piece has no length');
  const list = createPieceList(piecesMax);
  for (let i = 0; i < numbers.length; i += 2) {
    list.add(numbers[i] as number, numbers[i + 1] as number);
  }
  return list.finish(sizeOf(sparse), bodyBytes);
}

async function readMapBlocks(
  sizeBytes: number,
  bodyBytes: number,
  source: ByteSource,
  piecesMax: number,
): Promise<SparseMap> {
  const list = createPieceList(piecesMax);
  let count: number | undefined;
  let offset: number | undefined;
  let seen = 0;
  let line = '';
  let mapBytes = 0;
  while (count === undefined || seen < count) {
    mapBytes += TAR_BLOCK_BYTES;
    if (mapBytes > bodyBytes) throw invalid('its map is longer than its body');
    const text = (await readExactly(source, TAR_BLOCK_BYTES)).toString('latin1');
    const lines = (line + text).split('\n');
    line = lines.pop() ?? '';
    // After the last number the rest of the block is padding.
    for (const digits of lines) {
      if (seen === count) break;
      const value = parsePaxNumber(digits);
      if (count === undefined) count = value;
      else if (offset === undefined) offset = value;
      else {
        list.add(offset, value);
        offset = undefined;
        seen += 1;
      }
    }
    if (line.length > TAR_BLOCK_BYTES) throw invalid('its map holds no lines');
  }
  return list.finish(sizeBytes, bodyBytes - mapBytes);
}

function sizeOf(sparse: PaxSparse): number {
  if (sparse.sizeBytes === undefined) throw invalid('its size is not given');
  return sparse.sizeBytes;
}

function invalid(why: string): DsecError {
  return new DsecError('import-invalid', `a sparse member is malformed: ${why}`);
}
