import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DsecError } from '@dsec/std';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { OBJECT_BYTES_MAX, parseBpfObject } from '../src/bpf/elf.ts';
import { type ObjectParts, relocation, smallObject, words, writeObject } from './bpf-object.ts';

const RUNS = process.env.DSEC_TEST_LONG === '1' ? 50_000 : 2_000;

/** The object with one section or the symbols replaced. */
function changed(name: string, bytes: Buffer, more: object = {}): ObjectParts {
  const { sections, symbols } = smallObject();
  return {
    sections: sections.map((s) => (s.name === name ? { ...s, bytes, ...more } : s)),
    symbols,
  };
}

const refusalOf = (parts: ObjectParts | Buffer) => {
  try {
    parseBpfObject(Buffer.isBuffer(parts) ? parts : writeObject(parts));
  } catch (thrown) {
    return thrown instanceof DsecError ? `${thrown.code}: ${thrown.message}` : String(thrown);
  }
  return undefined;
};

test('a map, a program, and where one uses the other', () => {
  const object = parseBpfObject(writeObject(smallObject()));
  expect(object).toMatchObject({
    license: 'GPL',
    maps: [{ name: 'things', type: 1, keyBytes: 4, valueBytes: 8, entriesMax: 16, flags: 1 }],
    programs: [{ section: 'cgroup/connect4', references: [{ offset: 0, map: 'things' }] }],
  });
});

const built = join(import.meta.dirname, '../../../native/build/bpf');

test.skipIf(!existsSync(built))('the objects of the distribution (needs native/build/bpf)', () => {
  const [packet, socket] = ['packet', 'socket'].map((name) =>
    parseBpfObject(readFileSync(join(built, `${name}.bpf.o`))),
  );
  expect(packet?.programs.map(({ section }) => section)).toEqual(['tcx/ingress', 'tcx/egress']);
  expect(socket?.programs).toHaveLength(7);
  expect(socket?.license).toBe('GPL');
});

describe('refuses', () => {
  const { symbols } = smallObject();
  const renamed = (name: string, value = 0) => ({
    ...smallObject(),
    symbols: symbols.map((symbol) => (symbol.section === 3 ? { ...symbol, name, value } : symbol)),
  });
  const REL = '.relcgroup/connect4';
  test.each<[string, ObjectParts | Buffer, string]>([
    ['nothing', Buffer.alloc(0), 'shorter'],
    ['what is too large', Buffer.alloc(OBJECT_BYTES_MAX + 1), 'too large'],
    ['another kind of file', Buffer.from('#!/bin/sh\n'.repeat(20)), 'not a little-endian'],
    ['a program of no whole instruction', changed('cgroup/connect4', Buffer.alloc(12)), 'no whole'],
    ['half a map', changed('maps', words(1, 4, 8)), 'no whole'],
    ['half a relocation', changed(REL, Buffer.alloc(12)), 'no whole'],
    ['a map without a name', renamed(''), 'name of its own'],
    ['a map whose name is a path', renamed('../things'), 'name of its own'],
    ['a map that no symbol stands at', renamed('things', 4), 'name of its own'],
    ['a reference to what is no map', changed(REL, relocation(0, 2)), 'which is no map'],
    ['a reference to no symbol', changed(REL, relocation(0, 9)), 'do not exist'],
    ['a call', changed(REL, relocation(0, 1, 10)), 'which is no map'],
    ['a reference behind the end', changed(REL, relocation(4096, 1)), 'not at a load'],
    ['a reference at the last instruction', changed(REL, relocation(24, 1)), 'not at a load'],
    ['a reference between instructions', changed(REL, relocation(3, 1)), 'not at a load'],
    ['a reference at another instruction', changed(REL, relocation(16, 1)), 'not at a load'],
    [
      'two references in one place',
      changed(REL, Buffer.concat([relocation(0, 1), relocation(0, 1)])),
      'twice',
    ],
    ['relocations with addends', changed(REL, relocation(0, 1), { type: 4 }), 'addends'],
    ['no program', changed('cgroup/connect4', Buffer.alloc(0)), 'no program'],
    ['a license without an end', changed('license', Buffer.from('GPL')), 'without an end'],
  ])('%s', (_, parts, why) => {
    expect(refusalOf(parts)).toMatch(/^data-loss: BPF object: /);
    expect(refusalOf(parts)).toContain(why);
  });

  test('sections and symbols that lie outside', () => {
    const whole = writeObject(smallObject());
    for (let length = 0; length < whole.length; length += 1) {
      expect(refusalOf(whole.subarray(0, length))).toMatch(/^data-loss: /);
    }
  });
});

test('whatever is damaged, it is an error of ours or an object whose every part is whole', () => {
  const whole = existsSync(built)
    ? readFileSync(join(built, 'packet.bpf.o'))
    : writeObject(smallObject());
  const small = writeObject(smallObject());
  const change = fc.record({ at: fc.double({ min: 0, max: 1, noNaN: true }), byte: fc.nat(255) });
  const changes = fc.array(change, { minLength: 1, maxLength: 8 });
  fc.assert(
    fc.property(fc.boolean(), changes, (isSmall, list) => {
      const bytes = Buffer.from(isSmall ? small : whole);
      for (const { at, byte } of list) bytes[Math.floor(at * (bytes.length - 1))] = byte;
      let object: ReturnType<typeof parseBpfObject>;
      try {
        object = parseBpfObject(bytes);
      } catch (thrown) {
        expect(thrown).toBeInstanceOf(DsecError);
        expect((thrown as DsecError).code).toBe('data-loss');
        return;
      }
      const names = new Set(object.maps.map(({ name }) => name));
      for (const { instructions, references } of object.programs) {
        expect(instructions.length % 8).toBe(0);
        for (const { offset, map } of references) {
          expect(names.has(map)).toBe(true);
          expect(offset + 16).toBeLessThanOrEqual(instructions.length);
        }
      }
    }),
    { numRuns: RUNS, seed: 7 },
  );
});
