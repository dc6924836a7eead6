import { cacheEnvironments, type EnvironmentSource } from '@dsec/edge';
import type { ResolvedEnvironment } from '@dsec/layers';
import { createManualClock, DsecError } from '@dsec/std';
import { describe, expect, it } from 'vitest';

function counted() {
  const asked: (readonly string[])[] = [];
  const faults: Error[] = [];
  const source: EnvironmentSource = {
    layersOf: async (name) => [`base/${name}:1.0.0`],
    async resolve(refs) {
      asked.push(refs);
      const fault = faults.pop();
      if (fault !== undefined) throw fault;
      return { layers: [], image: null } satisfies ResolvedEnvironment;
    },
  };
  return { source, asked, faults };
}

describe('what refs were resolved to', () => {
  it('is kept for a second, for each list of refs', async () => {
    const { source, asked } = counted();
    const clock = createManualClock();
    const { resolve } = cacheEnvironments(source, clock);
    const first = await resolve(['a']);
    expect(await resolve(['a'])).toBe(first);
    await resolve(['a', 'b']);
    await resolve(['b', 'a']);
    expect(asked).toEqual([['a'], ['a', 'b'], ['b', 'a']]);
    clock.advance(1000);
    expect(await resolve(['a'])).not.toBe(first);
    expect(asked).toHaveLength(4);
  });

  it('is read once by those who ask at a time', async () => {
    const { source, asked } = counted();
    const { resolve } = cacheEnvironments(source, createManualClock());
    await Promise.all(Array.from({ length: 50 }, () => resolve(['a'])));
    expect(asked).toHaveLength(1);
  });

  it('is asked for again after a failure', async () => {
    const { source, asked, faults } = counted();
    faults.push(new DsecError('not-found', 'there is no such layer'));
    const { resolve } = cacheEnvironments(source, createManualClock());
    await expect(resolve(['a'])).rejects.toThrow('no such layer');
    await resolve(['a']);
    expect(asked).toHaveLength(2);
  });

  it('is bounded', async () => {
    const { source, asked } = counted();
    const { resolve } = cacheEnvironments(source, createManualClock());
    for (let index = 0; index < 1025; index += 1) await resolve([`layer-${index}`]);
    await resolve(['layer-1']);
    expect(asked).toHaveLength(1025);
    await resolve(['layer-0']);
    expect(asked).toHaveLength(1026);
  });
});
