/**
 * Cuts file data into chunks, keeps each distinct chunk once, and appends new ones to the blob in large
 * pieces. Chunks of zeros become holes.
 */
import { hash } from 'node:crypto';
import { DsecError } from '@dsec/std';
import type { BlobIndex } from './blob-index.ts';
import { type ChunkTable, createChunkTable, OWN_DEVICE } from './chunk-table.ts';
import { BLOCKS_MAX, blocksOf } from './format.ts';
import { BLOCK_BYTES, type BlobSink, CHUNK_BYTES } from './model.ts';

/** A reference to no chunk: a hole. */
export const HOLE = 0xffff_ffff;
const ARENA_BYTES = 4 * 1024 * 1024;
/**
 * Chunks that no file needs any more are given back in batches, so that one that returns soon is not lost.
 */
const DEAD_BLOCKS_MAX = (32 * 1024 * 1024) / BLOCK_BYTES;
const ZEROS = Buffer.alloc(CHUNK_BYTES);

export interface ChunkStore {
  readonly table: ChunkTable;
  /** One element a chunk of a file, in file order: a chunk of the table or `HOLE`. */
  readonly refs: ChunkRefs;
  write(bytes: Uint8Array): void;
  hole(length: number): void;
  /** Ends the current file: its last chunk may be short. */
  endFile(): void;
  /** The chunks of `count` references are used once less. */
  release(start: number, count: number): void;
  /** Writes out what is buffered and discards dead chunks. */
  finish(): void;
}

export interface ChunkRefs {
  readonly length: number;
  at(position: number): number;
}

export function createChunkStore(blob: BlobSink, sources: readonly BlobIndex[]): ChunkStore {
  const table = createChunkTable();
  const refs = createRefs();
  const cutter: Cutter = {
    blob,
    sources,
    table,
    refs,
    arena: Buffer.allocUnsafeSlow(ARENA_BYTES),
    completeBytes: 0,
    stagedBytes: 0,
    nextBlock: 0,
    dead: [],
    deadBlocks: 0,
  };
  return {
    table,
    refs,
    write(bytes) {
      for (let offset = 0; offset < bytes.length; ) {
        const length = Math.min(CHUNK_BYTES - cutter.stagedBytes, bytes.length - offset);
        const start = cutter.completeBytes + cutter.stagedBytes;
        cutter.arena.set(bytes.subarray(offset, offset + length), start);
        stage(cutter, length);
        offset += length;
      }
    },
    hole(length) {
      for (let left = length; left > 0; ) {
        if (cutter.stagedBytes === 0 && left >= CHUNK_BYTES) {
          refs.pushHoles(Math.floor(left / CHUNK_BYTES));
          left %= CHUNK_BYTES;
        } else {
          const part = Math.min(CHUNK_BYTES - cutter.stagedBytes, left);
          const start = cutter.completeBytes + cutter.stagedBytes;
          cutter.arena.fill(0, start, start + part);
          stage(cutter, part);
          left -= part;
        }
      }
    },
    endFile() {
      if (cutter.stagedBytes > 0) endChunk(cutter);
    },
    release(start, count) {
      for (let position = start; position < start + count; position += 1) {
        const chunk = refs.at(position);
        if (chunk !== HOLE) dropUse(cutter, chunk);
      }
      if (cutter.deadBlocks > DEAD_BLOCKS_MAX) discardDead(cutter);
    },
    finish() {
      discardDead(cutter);
      blob.flush();
    },
  };
}

interface Cutter {
  readonly blob: BlobSink;
  readonly sources: readonly BlobIndex[];
  readonly table: ChunkTable;
  readonly refs: GrowingRefs;
  /** Complete new chunks that are not yet in the blob, and behind them the chunk that is being filled. */
  readonly arena: Buffer;
  completeBytes: number;
  stagedBytes: number;
  nextBlock: number;
  dead: number[];
  deadBlocks: number;
}

function stage(cutter: Cutter, length: number): void {
  cutter.stagedBytes += length;
  if (cutter.stagedBytes === CHUNK_BYTES) endChunk(cutter);
}

function endChunk(cutter: Cutter): void {
  const { arena, table, refs, completeBytes: start, stagedBytes: length } = cutter;
  cutter.stagedBytes = 0;
  if (arena[start] === 0 && isZero(arena, start, length)) {
    refs.push(HOLE);
    return;
  }
  const paddedBytes = blocksOf(length) * BLOCK_BYTES;
  arena.fill(0, start + length, start + paddedBytes);
  const digest = hash('sha256', arena.subarray(start, start + paddedBytes), 'binary');
  let chunk = table.find(digest);
  if (chunk < 0) chunk = findInSources(cutter, digest);
  if (chunk < 0 || table.blocks(chunk) === 0) chunk = store(cutter, digest, chunk, paddedBytes);
  table.addUses(chunk, 1);
  refs.push(chunk);
  if (cutter.completeBytes > ARENA_BYTES - CHUNK_BYTES) writeOut(cutter);
}

function findInSources({ sources, table }: Cutter, digest: string): number {
  for (const [position, source] of sources.entries()) {
    const place = source.find(digest);
    if (place !== undefined) return table.add(digest, position + 1, place.block, place.blocks);
  }
  return -1;
}

/**
 * Keeps the staged chunk. `known` is its number when the table had it and its blocks were discarded, else -1.
 */
function store(cutter: Cutter, digest: string, known: number, paddedBytes: number): number {
  const block = cutter.nextBlock;
  const blocks = paddedBytes / BLOCK_BYTES;
  if (block + blocks >= BLOCKS_MAX) {
    throw new DsecError('import-limit', `a blob may hold at most ${BLOCKS_MAX} blocks`);
  }
  cutter.nextBlock += blocks;
  cutter.completeBytes += paddedBytes;
  if (known < 0) return cutter.table.add(digest, OWN_DEVICE, block, blocks);
  cutter.table.place(known, block, blocks);
  return known;
}

function dropUse(cutter: Cutter, chunk: number): void {
  const { table } = cutter;
  table.addUses(chunk, -1);
  if (table.uses(chunk) > 0 || table.device(chunk) !== OWN_DEVICE) return;
  cutter.dead.push(chunk);
  cutter.deadBlocks += table.blocks(chunk);
}

function discardDead(cutter: Cutter): void {
  writeOut(cutter);
  for (const chunk of cutter.dead) {
    const blocks = cutter.table.blocks(chunk);
    if (cutter.table.uses(chunk) > 0 || blocks === 0) continue;
    cutter.blob.discard(cutter.table.block(chunk), blocks);
    cutter.table.place(chunk, 0, 0);
  }
  cutter.dead = [];
  cutter.deadBlocks = 0;
}

/** Only called when no chunk is staged. */
function writeOut(cutter: Cutter): void {
  if (cutter.completeBytes > 0) cutter.blob.append(cutter.arena.subarray(0, cutter.completeBytes));
  cutter.completeBytes = 0;
}

interface GrowingRefs extends ChunkRefs {
  push(value: number): void;
  pushHoles(count: number): void;
}

function createRefs(): GrowingRefs {
  let values = new Uint32Array(1024);
  let length = 0;
  const reserve = (more: number) => {
    if (length + more <= values.length) return;
    const larger = new Uint32Array(Math.max(values.length * 2, length + more));
    larger.set(values);
    values = larger;
  };
  return {
    get length() {
      return length;
    },
    at: (position) => values[position] as number,
    push(value) {
      reserve(1);
      values[length] = value;
      length += 1;
    },
    pushHoles(count) {
      reserve(count);
      values.fill(HOLE, length, length + count);
      length += count;
    },
  };
}

function isZero(bytes: Buffer, start: number, length: number): boolean {
  return bytes.compare(ZEROS, 0, length, start, start + length) === 0;
}
