import { type Digest, digestOfHex } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import type { RootKind } from '../src/layer-ref.ts';
import { type LayerManifest, manifestOf } from '../src/manifest.ts';
import { type MountPlanInput, PLAN_LAYERS_MAX, planMounts } from '../src/mount-plan.ts';
import { fakeLayer } from './support/built-layer.ts';
import { codeOf } from './support/temporary.ts';

const idOf = (digit: string): Digest => digestOfHex(digit.repeat(64));

function layer(kind: RootKind, digit: string, blobs: readonly string[] = []) {
  const manifest: LayerManifest = {
    ...manifestOf(fakeLayer(digit).built),
    layerId: idOf(digit),
    devices: blobs.map((blob) => ({ blobId: idOf(blob), blocks: 2, bytes: 8192 })),
  };
  return { kind, manifest };
}

const input = (change: Partial<MountPlanInput>): MountPlanInput => ({
  form: 'descriptor',
  storeRoot: '/store',
  nodeDirectory: '/node',
  layers: [layer('base', '1')],
  upperDirectory: '/upper',
  allowSetuid: true,
  ...change,
});

describe('planMounts', () => {
  it('stacks diffs over toolkits over the workspace over the base', () => {
    const layers = [
      layer('base', '1', ['a']),
      layer('workspace', '2', ['b', 'a']),
      layer('toolkit', '3'),
      layer('toolkit', '4'),
      layer('diff', '5'),
      layer('diff', '6'),
    ];
    expect(planMounts(input({ layers }))).toMatchObject({
      form: 'descriptor',
      root: {
        kind: 'overlay',
        lower: ['6', '5', '4', '3', '2', '1'].map(idOf),
        upper: { directory: '/upper', upper: '/upper/upper', work: '/upper/work' },
      },
      attributes: ['noDev'],
    });
  });

  it('names the verified metadata on the node and the data in the store, in device order', () => {
    const plan = planMounts(input({ layers: [layer('base', '1', ['b', 'a'])] }));
    expect(plan.layers).toEqual([
      {
        layerId: idOf('1'),
        metaPath: `/node/layers/${'1'.repeat(64)}.erofs`,
        metaBytes: 4096,
        devices: [
          {
            blobId: idOf('b'),
            blocks: 2,
            bytes: 8192,
            path: `/store/blobs/${'b'.repeat(64)}/data`,
          },
          {
            blobId: idOf('a'),
            blocks: 2,
            bytes: 8192,
            path: `/store/blobs/${'a'.repeat(64)}/data`,
          },
        ],
        mountPath: `/node/mounts/${'1'.repeat(64)}`,
      },
    ]);
  });

  it('plans the same mount of a layer for every root', () => {
    const alone = planMounts(input({ layers: [layer('base', '1', ['a'])] }));
    const among = planMounts(input({ layers: [layer('base', '1', ['a']), layer('diff', '2')] }));
    expect(among.layers[0]).toEqual(alone.layers[0]);
  });

  it.each([
    [true, '/upper', ['noDev']],
    [false, '/upper', ['noDev', 'noSuid']],
    [true, undefined, ['readOnly', 'noDev']],
    [false, undefined, ['readOnly', 'noDev', 'noSuid']],
  ])('setuid %s, upper %s: %j', (allowSetuid, upperDirectory, attributes) => {
    expect(planMounts(input({ allowSetuid, upperDirectory })).attributes).toEqual(attributes);
  });

  it('takes a single layer without an upper for itself', () => {
    expect(planMounts(input({ upperDirectory: undefined })).root).toEqual({
      kind: 'layer',
      layerId: idOf('1'),
    });
    const layers = [layer('base', '1'), layer('toolkit', '2')];
    expect(planMounts(input({ layers, upperDirectory: undefined })).root).toEqual({
      kind: 'overlay',
      lower: [idOf('2'), idOf('1')],
      upper: undefined,
    });
  });

  const hex = (n: number) => n.toString(16);
  const many = Array.from({ length: PLAN_LAYERS_MAX + 1 }, (_, n) => {
    const { kind, manifest } = layer('diff', hex(n % 16));
    const layerId = digestOfHex(hex(n).padStart(64, '0'));
    return { kind, manifest: { ...manifest, layerId } };
  });

  it.each([
    ['no layer', []],
    ['a base over a workspace', [layer('workspace', '2'), layer('base', '1')]],
    ['a toolkit over a diff', [layer('base', '1'), layer('diff', '2'), layer('toolkit', '3')]],
    ['the same layer twice', [layer('base', '1'), layer('diff', '1')]],
    ['too many layers', many],
  ])('refuses %s', async (_name, layers) => {
    const plan = async () => planMounts(input({ layers }));
    expect(await codeOf(plan())).toBe('invalid-argument');
  });

  it('takes as many layers as it says', () => {
    expect(planMounts(input({ layers: many.slice(1) })).layers).toHaveLength(PLAN_LAYERS_MAX);
  });
});
