import { readFileSync } from 'node:fs';
import { DsecError } from '@dsec/std';
import koffi from 'koffi';
import { syscall } from './syscall.ts';

/**
 * The reading side of a BPF ring buffer (`kernel/bpf/ringbuf.c`): a page that holds how far the reader
 * is, a page that holds how far the writers are, then the data, mapped twice so that a record that wraps
 * lies in one piece.
 */
export interface RingBuffer {
  /** Gives each waiting record to `take`, at most `countMax`, and returns how many there were. */
  read(take: (record: Buffer) => void, countMax: number): number;
  close(): void;
}

const HEADER_BYTES = 8;
const BUSY = 0x8000_0000;
const DISCARDED = 0x4000_0000;
const [PROT_READ, PROT_WRITE, MAP_SHARED] = [1, 2, 1];

/** Maps a ring buffer of `dataBytes` (its `entriesMax`). A record is copied before `take` sees it. */
export function openRingBuffer(mapFd: number, dataBytes: number): RingBuffer {
  const page = pageBytes();
  const writersBytes = page + 2 * dataBytes;
  const reader = map(mapFd, page, PROT_READ | PROT_WRITE, 0);
  const writers = map(mapFd, writersBytes, PROT_READ, page);
  const consumed = new BigInt64Array(koffi.view(reader, page), 0, 1);
  const shared = koffi.view(writers, writersBytes);
  const produced = new BigInt64Array(shared, 0, 1);
  const words = new Uint32Array(shared);
  let isOpen = true;

  function read(take: (record: Buffer) => void, countMax: number): number {
    let count = 0;
    if (!isOpen) return count;
    // Atomic, so that a record's bytes are read after the word that says it is complete.
    let at = Atomics.load(consumed, 0);
    const end = Atomics.load(produced, 0);
    while (at < end && count < countMax) {
      const offset = page + Number(at % BigInt(dataBytes));
      const header = Atomics.load(words, offset / 4);
      if (header & BUSY) break;
      const length = header & ~DISCARDED & 0x3fff_ffff;
      const isWhole = !(header & DISCARDED);
      const record = isWhole
        ? Buffer.from(Buffer.from(shared, offset + HEADER_BYTES, length))
        : undefined;
      at += BigInt(Math.ceil((HEADER_BYTES + length) / 8) * 8);
      Atomics.store(consumed, 0, at);
      count += 1;
      if (record !== undefined) take(record);
    }
    return count;
  }

  function close(): void {
    if (!isOpen) return;
    isOpen = false;
    syscall('munmap', [reader, page], 'ring buffer');
    syscall('munmap', [writers, writersBytes], 'ring buffer');
  }
  return { read, close };
}

function map(mapFd: number, length: number, protection: number, offset: number): bigint {
  const args = [null, length, protection, MAP_SHARED, mapFd, offset];
  return BigInt(syscall('mmap', args, 'ring buffer'));
}

/** AT_PAGESZ of the auxiliary vector: aarch64 has three sizes, and the ring's layout follows it. */
export function pageBytes(): number {
  const [AT_PAGESZ, ENTRY_BYTES] = [6n, 16];
  const vector = readFileSync('/proc/self/auxv');
  for (let at = 0; at + ENTRY_BYTES <= vector.length; at += ENTRY_BYTES) {
    if (vector.readBigUInt64LE(at) === AT_PAGESZ) return Number(vector.readBigUInt64LE(at + 8));
  }
  throw new DsecError('unsupported', 'the kernel does not tell its page size');
}
