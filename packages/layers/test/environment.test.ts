import { describe, expect, it } from 'vitest';
import { resolveEnvironment } from '../src/environment.ts';
import { createLayerStore } from '../src/store-directory.ts';
import { publishFake } from './support/built-layer.ts';
import { codeOf, temporaryDirectory } from './support/temporary.ts';

const image = { env: ['A=b'], workdir: '/work', user: '1000', entrypoint: [], command: [] };

async function storeWithLayers() {
  const store = await createLayerStore(await temporaryDirectory());
  const refs = ['base/a:1.0.0', 'base/a:1.1.0', 'workspace/w:1.0.0', 'toolkit/t:1.0.0'];
  for (const ref of [...refs, 'toolkit/u:1.0.0', 'diff/d:1.0.0', 'diff/e:1.0.0']) {
    await publishFake(store, ref, ref, ref.startsWith('base') ? image : null);
  }
  await publishFake(store, 'toolkit/same:1.0.0', 'toolkit/t:1.0.0');
  return store;
}

describe('resolveEnvironment', () => {
  it('orders by kind, keeps the order within a kind and records what floated', async () => {
    const store = await storeWithLayers();
    const requested = [
      'diff/e:1.0.0',
      'toolkit/u:^1',
      'base/a:latest',
      'toolkit/t:1.0.0',
      'diff/d:1.0.0',
      'workspace/w:~1.0',
    ];
    const environment = await resolveEnvironment(store, requested);
    expect(environment.layers.map((layer) => layer.ref)).toEqual([
      'base/a:1.1.0',
      'workspace/w:1.0.0',
      'toolkit/u:1.0.0',
      'toolkit/t:1.0.0',
      'diff/e:1.0.0',
      'diff/d:1.0.0',
    ]);
    expect(environment.layers[0]).toMatchObject({ requested: 'base/a:latest', kind: 'base' });
    expect(environment.image).toEqual(image);
  });

  it.each([
    ['no base', ['toolkit/t:1.0.0'], 'invalid-argument'],
    ['nothing', [], 'invalid-argument'],
    ['two bases', ['base/a:1.0.0', 'base/a:1.1.0'], 'invalid-argument'],
    [
      'one layer under two names',
      ['base/a:^1', 'toolkit/t:^1', 'toolkit/same:^1'],
      'invalid-argument',
    ],
    ['a missing layer', ['base/a:^1', 'toolkit/none:^1'], 'not-found'],
    ['a bad name', ['base/a:^1', '../../etc:1.0.0'], 'invalid-argument'],
    ['too many', Array.from({ length: 65 }, () => 'base/a:^1'), 'invalid-argument'],
  ])('refuses %s', async (_name, refs, code) => {
    expect(await codeOf(resolveEnvironment(await storeWithLayers(), refs))).toBe(code);
  });
});
