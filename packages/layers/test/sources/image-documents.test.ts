import { describe, expect, it } from 'vitest';
import {
  ConfigSchema,
  IndexSchema,
  ManifestSchema,
  metadataOf,
  parseDocument,
  SavedImagesSchema,
} from '../../src/sources/image-documents.ts';
import { IMPORT_LIMITS_DEFAULT } from '../../src/sources/limits.ts';
import { jsonOf, OCI } from './image-encoder.ts';
import { errorWith } from './scratch.ts';

const digest = `sha256:${'a'.repeat(64)}`;
const descriptor = { mediaType: OCI.manifest, digest, size: 5 };
const index = { schemaVersion: 2, manifests: [descriptor] };
const manifest = { schemaVersion: 2, config: descriptor, layers: [descriptor] };
const config = {
  os: 'linux',
  architecture: 'amd64',
  rootfs: { type: 'layers', diff_ids: [digest] },
};

const parse = {
  index: (value: unknown) => parseDocument(jsonOf(value), IndexSchema, 'index'),
  manifest: (value: unknown) => parseDocument(jsonOf(value), ManifestSchema, 'manifest'),
  config: (value: unknown) => parseDocument(jsonOf(value), ConfigSchema, 'configuration'),
  saved: (value: unknown) => parseDocument(jsonOf(value), SavedImagesSchema, 'manifest.json'),
};

it('takes documents with what they may have beside', () => {
  const full = {
    ...descriptor,
    platform: { os: 'linux', architecture: 'arm', variant: 'v7', 'os.features': [] },
    annotations: { a: 'b' },
    urls: ['https://example.com'],
  };
  expect(
    parse.index({ ...index, mediaType: OCI.index, manifests: [full], subject: {} }).manifests[0]
      ?.digest,
  ).toBe(digest);
  expect(
    parse.index({ ...index, manifests: [{ ...descriptor, annotations: null, platform: null }] }),
  ).toBeTruthy();
  expect(parse.manifest({ ...manifest, annotations: {} }).layers).toHaveLength(1);
  expect(parse.config({ ...config, history: [{}], config: null })).toBeTruthy();
  expect(parse.config({ ...config, config: { Env: null, Labels: {}, Volumes: {} } })).toBeTruthy();
  expect(parse.saved([{ Config: 'x', RepoTags: null, Layers: ['y'], Parent: '' }])).toHaveLength(1);
});

describe('refuses', () => {
  it.each<[keyof typeof parse, string, unknown]>([
    ['index', 'a list', []],
    ['index', 'null', null],
    ['index', 'a number', 5],
    ['index', 'version 1', { ...index, schemaVersion: 1 }],
    ['index', 'another media type', { ...index, mediaType: OCI.manifest }],
    ['index', 'layers beside manifests', { ...index, layers: [] }],
    ['index', 'a configuration beside manifests', { ...index, config: descriptor }],
    ['index', 'no manifests', { schemaVersion: 2 }],
    [
      'index',
      'a path for a digest',
      { ...index, manifests: [{ ...descriptor, digest: 'sha256:../x' }] },
    ],
    [
      'index',
      'upper case',
      { ...index, manifests: [{ ...descriptor, digest: digest.toUpperCase() }] },
    ],
    [
      'index',
      'a digest and more',
      { ...index, manifests: [{ ...descriptor, digest: `${digest}\n` }] },
    ],
    [
      'index',
      'sha512',
      { ...index, manifests: [{ ...descriptor, digest: `sha512:${'a'.repeat(128)}` }] },
    ],
    ['index', 'a negative size', { ...index, manifests: [{ ...descriptor, size: -1 }] }],
    ['index', 'half a byte', { ...index, manifests: [{ ...descriptor, size: 0.5 }] }],
    ['index', 'a size of 2^53', { ...index, manifests: [{ ...descriptor, size: 2 ** 53 }] }],
    ['index', 'a size as text', { ...index, manifests: [{ ...descriptor, size: '5' }] }],
    ['index', 'no media type', { ...index, manifests: [{ digest, size: 5 }] }],
    [
      'index',
      'odd annotations',
      { ...index, manifests: [{ ...descriptor, annotations: { a: 5 } }] },
    ],
    ['manifest', 'manifests beside layers', { ...manifest, manifests: [] }],
    ['manifest', 'no configuration', { schemaVersion: 2, layers: [] }],
    ['manifest', "docker's version 1", { schemaVersion: 1, fsLayers: [] }],
    ['config', 'no platform', { rootfs: config.rootfs }],
    ['config', 'no file system', { os: 'linux', architecture: 'amd64' }],
    ['config', 'another file system', { ...config, rootfs: { type: 'x', diff_ids: [] } }],
    ['config', 'a bad digest', { ...config, rootfs: { type: 'layers', diff_ids: ['x'] } }],
    ['config', 'an environment as text', { ...config, config: { Env: 'A=1' } }],
    ['config', 'an environment of numbers', { ...config, config: { Env: [1] } }],
    ['saved', 'one image without a list', { Config: 'x' }],
    ['saved', 'a long name', [{ Config: 'x'.repeat(300) }]],
  ])('in %s: %s', (which, _, value) => {
    expect(() => parse[which](value)).toThrowError(errorWith('import-invalid'));
  });

  it.each(['', '{', 'nul', '[1,]', '{"schemaVersion":2', '['.repeat(1_000_000), '\xff'])(
    'text that is not JSON',
    (text) => {
      expect(() => parseDocument(Buffer.from(text, 'latin1'), IndexSchema, 'x')).toThrowError(
        errorWith('import-invalid'),
      );
    },
  );

  it('a prototype for a document', () => {
    const bytes = Buffer.from('{"__proto__": {"schemaVersion": 2, "manifests": []}}');
    expect(() => parseDocument(bytes, IndexSchema, 'x')).toThrowError(errorWith('import-invalid'));
  });
});

describe('metadata', () => {
  const metadata = (process: object | null, limits = IMPORT_LIMITS_DEFAULT) =>
    metadataOf(parse.config({ ...config, config: process }), limits);

  it('has a value for everything', () => {
    expect(metadata(null)).toEqual({ env: [], workdir: '', user: '', entrypoint: [], command: [] });
    expect(
      metadata({
        Env: ['PATH=/bin', 'A=ü'],
        WorkingDir: '/w',
        User: '1000:1000',
        Entrypoint: ['/init'],
        Cmd: ['sh', '-c', 'true'],
      }),
    ).toEqual({
      env: ['PATH=/bin', 'A=ü'],
      workdir: '/w',
      user: '1000:1000',
      entrypoint: ['/init'],
      command: ['sh', '-c', 'true'],
    });
  });

  it('has a limit', () => {
    const limits = { ...IMPORT_LIMITS_DEFAULT, imageMetadataBytesMax: 1000 };
    expect(() => metadata({ Env: ['A='.padEnd(1000, 'x')] }, limits)).toThrowError(
      errorWith('import-limit'),
    );
  });

  it('holds no NUL', () => {
    expect(() => metadata({ User: 'a\0b' })).toThrowError(errorWith('import-invalid'));
    expect(metadata({ User: 'a\\u0000b' }).user).toBe('a\\u0000b');
  });
});
