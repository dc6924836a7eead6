import { DsecError } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { checkManifest, type LayerManifest, manifestOf } from '../src/manifest.ts';
import { encodeRecord } from '../src/record-file.ts';
import { DEVICES_MAX, RECORD_BYTES_MAX } from '../src/record-limits.ts';
import { fakeLayer } from './support/built-layer.ts';

const { built } = fakeLayer('content');
const manifest = manifestOf(built);

describe('manifestOf', () => {
  it('depends on nothing but the layer', () => {
    expect(encodeRecord(manifestOf(fakeLayer('content').built))).toBe(encodeRecord(manifest));
    expect(manifest).toMatchObject({
      layerId: built.layerId,
      treeDigest: built.treeDigest,
      metaBytes: 4096,
      devices: [{ blocks: 1, bytes: 4096 }],
    });
  });

  it('refuses more devices than a layer may have', () => {
    const devices = Array.from({ length: DEVICES_MAX + 1 }, () => ({
      blobId: built.layerId,
      blocks: 1,
    }));
    expect(() => manifestOf({ ...built, devices })).toThrow(DsecError);
  });
});

describe('checkManifest', () => {
  const [device] = manifest.devices;
  const wrong: [string, Partial<LayerManifest>][] = [
    ['another layer', { layerId: built.treeDigest }],
    [
      'bytes that are not its blocks',
      { devices: [{ blobId: built.layerId, blocks: 2, bytes: 1 }] },
    ],
    ['a blob twice', { devices: device === undefined ? [] : [device, device] }],
  ];

  it.each(wrong)('refuses one with %s', (_name, change) => {
    expect(() => checkManifest({ ...manifest, ...change }, built.layerId)).toThrow(/manifest of/);
  });
});

it('writes no record that it would not read', () => {
  expect(() => encodeRecord({ text: 'x'.repeat(RECORD_BYTES_MAX) })).toThrow(DsecError);
});
