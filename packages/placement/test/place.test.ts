import { createSeededRandom, type EdgeId } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { type EdgeCandidate, placeMany, placeOne } from '../src/index.ts';

const GIB = 2 ** 30;

function edge(name: string, more: Partial<EdgeCandidate> & { free?: number } = {}): EdgeCandidate {
  const { free = 32 * GIB, ...rest } = more;
  return {
    ...{ edge: name as EdgeId, healthy: true, backends: ['container'], live: 0, pending: 0 },
    load: {
      ...{ admitting: true, cpuCount: 16, memoryTotalBytes: 64 * GIB, memoryAvailableBytes: free },
      ...{ diskAvailableBytes: 1, pidsAvailable: 1 },
    },
    ...rest,
  };
}
const refusing = (name: string) => {
  const one = edge(name);
  return { ...one, load: { ...one.load, admitting: false, refusal: 'slots: 9 of 8' } };
};
const count = (edges: readonly EdgeId[], name: string) =>
  edges.filter((found) => found === name).length;

describe('what can be chosen', () => {
  const random = createSeededRandom(1);
  it.each([
    ['no edge', [], {}, 'unavailable'],
    ['none answers', [edge('a', { healthy: false })], {}, 'unavailable'],
    ['none has the backend', [edge('a')], { backend: 'microvm' as const }, 'unsupported'],
    ['all refuse', [refusing('a'), refusing('b')], {}, 'overloaded'],
    ['all were tried', [edge('a')], { excluded: new Set(['a' as EdgeId]) }, 'overloaded'],
  ])('%s', (_what, fleet, request, code) => {
    expect(() => placeOne(fleet, request, random)).toThrowError(expect.objectContaining({ code }));
  });

  it('says why one of them refuses', () => {
    expect(() => placeOne([refusing('a')], {}, random)).toThrowError(
      expect.objectContaining({ details: { edges: 1, refusal: 'slots: 9 of 8' } }),
    );
  });

  it('passes over those that are not healthy, refuse, or were tried', () => {
    const fleet = [edge('a', { healthy: false }), refusing('b'), edge('c'), edge('d')];
    const request = { excluded: new Set(['c' as EdgeId]) };
    for (let draw = 0; draw < 50; draw += 1) expect(placeOne(fleet, request, random)).toBe('d');
  });
});

describe('which is chosen', () => {
  it('the emptier one mostly, the fuller one sometimes: no herd', () => {
    const fleet = [edge('full', { free: 2 * GIB }), edge('empty')];
    const random = createSeededRandom(3);
    const chosen = Array.from({ length: 400 }, () => placeOne(fleet, {}, random));
    expect(count(chosen, 'empty')).toBeGreaterThan(250);
    expect(count(chosen, 'full')).toBeGreaterThan(20);
  });

  it('what was placed and is not seen counts as if it were there', () => {
    const fleet = [edge('a', { pending: 2000 }), edge('b')];
    const random = createSeededRandom(4);
    const chosen = Array.from({ length: 400 }, () => placeOne(fleet, {}, random));
    expect(count(chosen, 'b')).toBeGreaterThan(250);
  });

  it('spreads a batch in one pass, by what there is room for', () => {
    const fleet = Array.from({ length: 8 }, (_, index) => edge(`e${index}`));
    const placed = placeMany(fleet, {}, 800, createSeededRandom(5));
    for (const { edge: name } of fleet) {
      expect(count(placed, name)).toBeGreaterThan(85);
      expect(count(placed, name)).toBeLessThan(115);
    }
  });

  it('is the same for the same seed', () => {
    const fleet = [edge('a'), edge('b'), edge('c')];
    const place = () => placeMany(fleet, {}, 50, createSeededRandom(6));
    expect(place()).toEqual(place());
  });
});
