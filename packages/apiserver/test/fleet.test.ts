import type { EdgeId, ShardId } from '@dsec/std';
import { expect, test } from 'vitest';
import type { EdgeLink } from '../src/fleet/edge-link.ts';
import { createFleet } from '../src/fleet/fleet.ts';

const link = (edgeId: string, shardId = 's1') =>
  ({ edgeId: edgeId as EdgeId, shardId: shardId as ShardId }) as EdgeLink;

test('a sandbox id leads to its edge; an edge that is not configured is nobody', () => {
  const fleet = createFleet([link('b'), link('a')]);
  expect(fleet.links.map(({ edgeId }) => edgeId)).toEqual(['a', 'b']);
  expect(fleet.linkOf(`sb-s1-a-${'x'.repeat(16)}`).edgeId).toBe('a');
  for (const id of ['sb-s1-c-', 'sb-s2-a-']) {
    expect(() => fleet.linkOf(`${id}${'x'.repeat(16)}`)).toThrowError(
      expect.objectContaining({ code: 'not-found' }),
    );
  }
  expect(() => fleet.link('c' as EdgeId)).toThrowError(
    expect.objectContaining({ code: 'not-found' }),
  );
});

test('two edges of one id are a mistake', () => {
  expect(() => createFleet([link('a'), link('a')])).toThrowError(
    expect.objectContaining({ code: 'invalid-argument' }),
  );
});
