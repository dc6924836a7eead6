import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { hostPlatform } from '../../src/sources/image-platform.ts';
import { tarMember, tarOf } from './tar-encoder.ts';

/** Makes images by hand, right ones and ones that lie. Their files are a map from name to content. */
export type ImageTree = Map<string, Buffer>;

export const OCI = {
  index: 'application/vnd.oci.image.index.v1+json',
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  tar: 'application/vnd.oci.image.layer.v1.tar',
  gzip: 'application/vnd.oci.image.layer.v1.tar+gzip',
  zstd: 'application/vnd.oci.image.layer.v1.tar+zstd',
} as const;

export const digestOf = (bytes: Buffer) =>
  `sha256:${createHash('sha256').update(bytes).digest('hex')}`;

export interface DescriptorFields {
  readonly mediaType: string;
  readonly digest: string;
  readonly size: number;
  readonly [more: string]: unknown;
}

export const jsonOf = (value: unknown) => Buffer.from(JSON.stringify(value));
export const blobPath = (digest: string) => `blobs/${digest.replace(':', '/')}`;

/** Puts a blob into the tree and describes it. */
export function addBlob(tree: ImageTree, mediaType: string, bytes: Buffer): DescriptorFields {
  const digest = digestOf(bytes);
  tree.set(blobPath(digest), bytes);
  return { mediaType, digest, size: bytes.length };
}

export interface LayerFields {
  /** The layer as it is stored. */
  readonly bytes: Buffer;
  readonly mediaType?: string;
  /** The tar inside, when the layer is compressed. */
  readonly tar?: Buffer;
}

export interface ImageFields {
  readonly layers: readonly LayerFields[];
  readonly platform?: { os: string; architecture: string; variant?: string };
  /** The part of the configuration that is about processes. */
  readonly config?: unknown;
  /** Changes to the documents before they are digested. */
  readonly patchConfig?: object;
  readonly patchManifest?: object;
}

export function addImage(tree: ImageTree, fields: ImageFields): DescriptorFields {
  const { layers, platform = hostPlatform(), config = {} } = fields;
  const configDocument = {
    ...platform,
    config,
    rootfs: { type: 'layers', diff_ids: layers.map(({ bytes, tar }) => digestOf(tar ?? bytes)) },
    ...fields.patchConfig,
  };
  const manifest = {
    schemaVersion: 2,
    mediaType: OCI.manifest,
    config: addBlob(tree, OCI.config, jsonOf(configDocument)),
    layers: layers.map(({ bytes, mediaType = OCI.tar }) => addBlob(tree, mediaType, bytes)),
    ...fields.patchManifest,
  };
  return addBlob(tree, OCI.manifest, jsonOf(manifest));
}

export function layoutOf(
  tree: ImageTree,
  manifests: readonly object[],
  patchIndex = {},
): ImageTree {
  tree.set('oci-layout', jsonOf({ imageLayoutVersion: '1.0.0' }));
  tree.set(
    'index.json',
    jsonOf({ schemaVersion: 2, mediaType: OCI.index, manifests, ...patchIndex }),
  );
  return tree;
}

/** A layout with one image. */
export function simpleLayout(fields: ImageFields): ImageTree {
  const tree: ImageTree = new Map();
  return layoutOf(tree, [addImage(tree, fields)]);
}

export function writeTree(directory: string, tree: ImageTree): string {
  for (const [name, bytes] of tree) {
    const path = join(directory, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, bytes);
  }
  return directory;
}

export function tarOfTree(tree: ImageTree, more: readonly Buffer[] = []): Buffer {
  return tarOf(...Array.from(tree, ([name, bytes]) => tarMember({ name }, bytes)), ...more);
}

export function writeTar(path: string, tree: ImageTree, more: readonly Buffer[] = []): string {
  writeFileSync(path, tarOfTree(tree, more));
  return path;
}

/** A layer with the given members. */
export function layer(...members: readonly Buffer[]): LayerFields {
  return { bytes: tarOf(...members) };
}

/** What `docker save` writes in its older form: directories named by ids, and `manifest.json`. */
export function savedImage(layers: readonly LayerFields[], patch: object = {}): ImageTree {
  const tree: ImageTree = new Map();
  const config = jsonOf({
    ...hostPlatform(),
    config: { Env: ['A=1'], Cmd: ['sh'], Entrypoint: null },
    rootfs: { type: 'layers', diff_ids: layers.map(({ bytes, tar }) => digestOf(tar ?? bytes)) },
  });
  const configName = `${digestOf(config).slice(7)}.json`;
  tree.set(configName, config);
  const names = layers.map(({ bytes }, i) => {
    const id = createHash('sha256').update(`${i}`).digest('hex');
    tree.set(`${id}/VERSION`, Buffer.from('1.0'));
    tree.set(`${id}/layer.tar`, bytes);
    return `${id}/layer.tar`;
  });
  const entry = { Config: configName, RepoTags: ['demo:1'], Layers: names, ...patch };
  tree.set('manifest.json', jsonOf([entry]));
  tree.set('repositories', jsonOf({ demo: { 1: 'x' } }));
  return tree;
}

/** A copy with one bit of it changed. */
export function withChange(bytes: Buffer | undefined, at: number): Buffer {
  const copy = Buffer.from(bytes ?? '');
  copy.writeUInt8(copy.readUInt8(at) ^ 1, at);
  return copy;
}
