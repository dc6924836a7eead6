import { describe, expect, it } from 'vitest';
import { layerOfKey, mountKeyOf } from '../src/mount-key.ts';
import { layerId } from './support/plans.ts';

const base = { kind: 'base', layerId: layerId('a') };
const grading = { kind: 'grading', layerId: layerId('a') };
const of = (isolationDomain: string, layer = base) => mountKeyOf({ isolationDomain }, layer);

describe('the key of a mount', () => {
  it('is that of the layer for the whole node, and else has a mark of the domain', () => {
    expect(of('node')).toBe(layerId('a'));
    expect(of('project/a')).toMatch(/^sha256:a{64}\.[0-9a-f]{16}$/);
    expect(of('project/a')).toBe(of('project/a'));
    expect(layerOfKey(of('project/a'))).toBe(layerId('a'));
  });

  it('differs for each domain, and for what grades in each of them', () => {
    const keys = ['node', 'project/a', 'project/b', 'job/a/b'].flatMap((domain) => [
      of(domain),
      of(domain, grading),
    ]);
    expect(new Set(keys).size).toBe(keys.length);
  });
});
