import { closeSync } from 'node:fs';
import { DsecError } from '@dsec/std';
import { describe, expect, onTestFinished, test } from 'vitest';
import {
  BPF_ATTACH_TYPES,
  BPF_MAP_TYPES,
  BPF_PROGRAM_TYPES,
  bpfProgramId,
  bpfRefusal,
  createBpfMap,
  deleteBpfMapBatch,
  deleteFromBpfMap,
  keysOfBpfMap,
  loadBpfProgram,
  lookUpInBpfMap,
  openBpfMapById,
  openBpfObject,
  updateBpfMap,
  updateBpfMapBatch,
} from '../src/bpf.ts';

const refusal = bpfRefusal();

const uint32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};

const closed = (fd: number) => {
  onTestFinished(() => closeSync(fd));
  return fd;
};

test('is refused with a reason, or works', () => {
  if (refusal !== undefined) expect(refusal).toMatchObject({ code: 'unsupported' });
});

test('nothing is pinned outside of a bpf file system', () => {
  expect(() => openBpfObject('/nothing/there')).toThrow(DsecError);
});

describe.skipIf(refusal !== undefined)('with bpf(2) (needs the privilege)', () => {
  const HASH = {
    name: 'dsec_test',
    type: BPF_MAP_TYPES.hash,
    keyBytes: 4,
    valueBytes: 4,
    entriesMax: 4,
    flags: 0,
  };

  test('entries of a map', () => {
    const map = closed(createBpfMap(HASH));
    const value = Buffer.alloc(4);
    expect(lookUpInBpfMap(map, uint32(1), value)).toBe(false);
    updateBpfMap(map, uint32(1), uint32(11));
    updateBpfMapBatch(
      map,
      Buffer.concat([2, 3].map(uint32)),
      Buffer.concat([22, 33].map(uint32)),
      2,
    );
    expect(lookUpInBpfMap(map, uint32(3), value)).toBe(true);
    expect(value.readUInt32LE()).toBe(33);
    const keys = keysOfBpfMap(map, 4, 10).map((key) => key.readUInt32LE());
    expect(keys.sort()).toEqual([1, 2, 3]);
    expect(keysOfBpfMap(map, 4, 2)).toHaveLength(2);
    expect(deleteFromBpfMap(map, uint32(1))).toBe(true);
    expect(deleteFromBpfMap(map, uint32(1))).toBe(false);
    deleteBpfMapBatch(map, Buffer.concat([2, 3].map(uint32)), 2);
    expect(keysOfBpfMap(map, 4, 10)).toEqual([]);
  });

  test('a full map says so', () => {
    const map = closed(createBpfMap(HASH));
    for (let i = 0; i < 4; i += 1) updateBpfMap(map, uint32(i), uint32(i));
    expect(() => updateBpfMap(map, uint32(9), uint32(9))).toThrow(/E2BIG/);
  });

  test('a map in an array of maps, by its id', () => {
    const inner = closed(createBpfMap(HASH));
    const outer = closed(
      createBpfMap({ ...HASH, type: BPF_MAP_TYPES.arrayOfMaps, innerMapFd: inner }),
    );
    updateBpfMap(outer, uint32(2), uint32(inner));
    const id = Buffer.alloc(4);
    expect(lookUpInBpfMap(outer, uint32(2), id)).toBe(true);
    expect(lookUpInBpfMap(outer, uint32(3), id)).toBe(false);
    lookUpInBpfMap(outer, uint32(2), id);
    const again = closed(openBpfMapById(id.readUInt32LE()));
    updateBpfMap(again, uint32(7), uint32(70));
    expect(lookUpInBpfMap(inner, uint32(7), Buffer.alloc(4))).toBe(true);
  });

  const PROGRAM = {
    name: 'dsec_test',
    type: BPF_PROGRAM_TYPES.cgroupSock,
    attachType: BPF_ATTACH_TYPES.cgroupSockCreate,
    license: 'GPL',
  };

  test('a program', () => {
    const instructions = Buffer.from('b700000001000000' + '9500000000000000', 'hex');
    const program = closed(loadBpfProgram({ ...PROGRAM, instructions }));
    expect(bpfProgramId(program)).toBeGreaterThan(0);
  });

  test('what the verifier refuses, in its words', () => {
    // Ends without a result.
    const instructions = Buffer.from('9500000000000000', 'hex');
    expect(() => loadBpfProgram({ ...PROGRAM, instructions })).toThrow(/R0 !read_ok/);
  });
});
