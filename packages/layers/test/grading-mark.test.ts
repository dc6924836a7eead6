import { expect, it } from 'vitest';
import { resolveEnvironment } from '../src/environment.ts';
import { isGrading } from '../src/grading-mark.ts';
import { parseLayerRef } from '../src/layer-ref.ts';
import { removeRef } from '../src/ref-store.ts';
import { createLayerStore } from '../src/store-directory.ts';
import { tagLayer } from '../src/tag-layer.ts';
import { publishFake } from './support/built-layer.ts';
import { codeOf, temporaryDirectory } from './support/temporary.ts';

const GRADER = parseLayerRef('grading/tests:1.0.0');

it('keeps a layer that grades from every other kind of name, for good', async () => {
  const store = await createLayerStore(await temporaryDirectory());
  const { layerId } = await publishFake(store, 'grading/tests:1.0.0', 'a');
  expect(await isGrading(store, layerId)).toBe(true);
  const names = ['base/x:1.0.0', 'workspace/x:1.0.0', 'toolkit/x:1.0.0', 'tools/x:1.0.0'];
  for (const name of names) {
    expect(await codeOf(tagLayer(store, parseLayerRef(name), layerId)), name).toBe(
      'invalid-argument',
    );
  }
  await tagLayer(store, parseLayerRef('grading/more:1.0.0'), layerId);
  await removeRef(store, GRADER);
  await removeRef(store, parseLayerRef('grading/more:1.0.0'));
  expect(await codeOf(tagLayer(store, parseLayerRef('toolkit/x:1.0.0'), layerId))).toBe(
    'invalid-argument',
  );
});

it('makes no layer grade that a solver may have', async () => {
  const store = await createLayerStore(await temporaryDirectory());
  const { layerId } = await publishFake(store, 'toolkit/x:1.0.0', 'a');
  expect(await codeOf(tagLayer(store, GRADER, layerId))).toBe('invalid-argument');
  expect(await isGrading(store, layerId)).toBe(false);
  await tagLayer(store, parseLayerRef('tools/x:1.0.0'), layerId);
});

it('puts layers of these kinds beside the root of an environment', async () => {
  const store = await createLayerStore(await temporaryDirectory());
  await publishFake(store, 'base/b:1.0.0', 'b');
  await publishFake(store, 'grading/tests:1.0.0', 'g');
  await publishFake(store, 'tools/kit:1.0.0', 'k');
  await publishFake(store, 'tools/tests:1.0.0', 't');
  await publishFake(store, 'tools/platform:1.0.0', 'p');
  const refs = ['tools/kit:1.0.0', 'base/b:1.0.0', 'grading/tests:1.0.0'];
  const { layers, apart } = await resolveEnvironment(store, refs);
  expect(layers.map(({ ref }) => ref)).toEqual(['base/b:1.0.0']);
  expect(apart?.map(({ kind, name }) => `${kind} ${name}`)).toEqual(['tools kit', 'grading tests']);
  for (const other of ['tools/tests:1.0.0', 'tools/platform:1.0.0']) {
    expect(await codeOf(resolveEnvironment(store, [...refs, other])), other).toBe(
      'invalid-argument',
    );
  }
  expect(await codeOf(resolveEnvironment(store, ['grading/tests:1.0.0']))).toBe('invalid-argument');
});
