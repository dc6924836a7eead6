/**
 * Images with changes (THREATS row 36): what is imported is what the digests say, or the import fails with a
 * typed error. Nothing outside of the image is ever read: a canary lies beside it.
 */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { importSource } from '@dsec/layers';
import { makeNode } from '@dsec/linux';
import { createSeededRandom, DsecError, type Random } from '@dsec/std';
import { afterAll, expect, it } from 'vitest';
import {
  addBlob,
  addImage,
  blobPath,
  type DescriptorFields,
  type ImageTree,
  jsonOf,
  type LayerFields,
  layer,
  layoutOf,
  OCI,
  savedImage,
  tarOfTree,
} from '../../packages/layers/test/sources/image-encoder.ts';
import { createRecordingBuilder } from '../../packages/layers/test/sources/recording-builder.ts';
import { tarMember } from '../../packages/layers/test/sources/tar-encoder.ts';

const SEED = Number(process.env.SEED ?? 7);
const isLong = process.env.DSEC_TEST_LONG === '1';
const runs = isLong ? 40_000 : 1500;
const timeout = isLong ? 3_600_000 : 300_000;

const work = mkdtempSync(join(tmpdir(), 'dsec-oci-fuzz-'));
afterAll(() => rmSync(work, { recursive: true, force: true }));
const CANARY = 'the canary';
const canary = layer(tarMember({ name: CANARY }));
writeFileSync(join(work, 'canary.tar'), canary.bytes);

const one = layer(tarMember({ name: 'a' }, '1'));
const two = layer(tarMember({ name: '.wh.a' }), tarMember({ name: 'b' }, '22'));
const zipped: LayerFields = { bytes: gzipSync(two.bytes), tar: two.bytes, mediaType: OCI.gzip };

function layout(): ImageTree {
  const tree: ImageTree = new Map();
  const image = addImage(tree, { layers: [one, zipped], config: { Env: ['A=1'] } });
  const other = addImage(tree, {
    layers: [one],
    platform: { os: 'linux', architecture: 's390x' },
  });
  const manifests = [{ ...other, platform: { os: 'linux', architecture: 's390x' } }, image];
  const index = jsonOf({ schemaVersion: 2, mediaType: OCI.index, manifests });
  return layoutOf(tree, [addBlob(tree, OCI.index, index)]);
}

const SOURCES = [
  { kind: 'oci-layout', tree: layout() },
  { kind: 'docker-archive', tree: savedImage([one, zipped]) },
] as const;
const EXPECTED = ['file a 1', 'layer', 'whiteout a', 'file b 2'];

const pick = <T>(random: Random, list: readonly T[]): T => list[random.int(list.length)] as T;

const VALUES: readonly unknown[] = [
  null,
  0,
  -1,
  2,
  2 ** 53,
  1e308,
  '',
  '../canary.tar',
  '../../canary.tar',
  `${work}/canary.tar`,
  'sha256:../../../canary.tar',
  `sha256:${'0'.repeat(64)}`,
  `sha512:${'0'.repeat(128)}`,
  '\0',
  [],
  {},
  [[]],
  { digest: 'sha256:../../../canary.tar', size: canary.bytes.length, mediaType: OCI.tar },
  ...Object.values(OCI),
  'application/vnd.docker.distribution.manifest.v2+json',
  'x'.repeat(10_000),
];

/** Changes one value somewhere in a document. */
function mutateJson(value: unknown, random: Random): unknown {
  if (typeof value !== 'object' || value === null || random.int(6) === 0) {
    return pick(random, VALUES);
  }
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>;
  const keys = Object.keys(copy);
  if (keys.length === 0 || random.int(12) === 0) {
    copy[pick(random, ['manifests', 'layers', 'config', '__proto__', '0', 'urls'])] = pick(
      random,
      VALUES,
    );
    return copy;
  }
  const key = pick(random, keys);
  if (random.int(10) === 0) delete copy[key];
  else copy[key] = mutateJson(copy[key], random);
  return Array.isArray(value) ? Object.values(copy) : copy;
}

/** A changed document and, where it was a blob, a digest that is right again. */
function mutateDocument(tree: ImageTree, name: string, random: Random): void {
  const bytes = tree.get(name) ?? Buffer.alloc(0);
  let document: unknown;
  try {
    document = JSON.parse(bytes.toString());
  } catch {
    return;
  }
  const changed = jsonOf(mutateJson(document, random));
  tree.set(name, changed);
  if (!name.startsWith('blobs/') || random.int(4) === 0) return;
  const { digest, size } = addBlob(tree, OCI.index, changed);
  const old = name.replace('blobs/sha256/', 'sha256:');
  for (const [each, content] of tree) {
    if (!content.includes(old)) continue;
    const text = content
      .toString()
      .replaceAll(old, digest)
      .replaceAll(`"size":${bytes.length}`, `"size":${size}`);
    tree.set(each, Buffer.from(text));
  }
}

function mutateTree(tree: ImageTree, random: Random): void {
  const name = pick(random, [...tree.keys()]);
  const bytes = Buffer.from(tree.get(name) ?? '');
  switch (random.int(7)) {
    case 0:
      tree.delete(name);
      break;
    case 1:
      if (bytes.length > 0) bytes[random.int(bytes.length)] = random.int(256);
      tree.set(name, bytes);
      break;
    case 2:
      tree.set(name, bytes.subarray(0, random.int(bytes.length + 1)));
      break;
    case 3:
      tree.set(name, Buffer.concat([bytes, Buffer.from(random.bytes(1 + random.int(600)))]));
      break;
    default:
      mutateDocument(tree, name, random);
  }
}

/** Puts something that is no regular file in the place of one, or of a directory. */
function mutateDisk(root: string, tree: ImageTree, random: Random): void {
  const name = pick(random, [...tree.keys()]);
  const path = random.int(4) === 0 ? dirname(join(root, name)) : join(root, name);
  if (path === root || !existsSync(path)) return;
  rmSync(path, { recursive: true });
  const kind = random.int(5);
  if (kind === 0) symlinkSync(join(work, 'canary.tar'), path);
  else if (kind === 1) symlinkSync('../../../canary.tar', path);
  else if (kind === 2) symlinkSync(path, path);
  else if (kind === 3) mkdirSync(path);
  else makeNode(path, { mode: 0o010_644 });
}

function writeDirectory(root: string, tree: ImageTree): void {
  for (const [name, bytes] of tree) {
    const path = join(root, name);
    mkdirSync(dirname(path), { recursive: true });
    if (lstatSync(path, { throwIfNoEntry: false }) === undefined) writeFileSync(path, bytes);
  }
}

/** A random change of a random source, and what importing it gives. */
async function runOne(random: Random): Promise<{ outcome: string; calls: string[] }> {
  const { kind, tree: original } = pick(random, SOURCES);
  const tree = new Map(original);
  const path = join(work, 'image');
  const changes = random.int(3);
  for (let i = 0; i < changes; i += 1) mutateTree(tree, random);
  if (random.int(2) === 0) {
    mkdirSync(path);
    writeDirectory(path, tree);
    if (random.int(2) === 0) mutateDisk(path, tree, random);
  } else {
    const target = pick(random, ['../canary.tar', '/etc/passwd', 'manifest.json']);
    const links = [...tree.keys()].filter(() => random.int(12) === 0);
    for (const name of links) tree.delete(name);
    const members = links.map((name) =>
      tarMember({ name, type: pick(random, ['1', '2']), link: target }),
    );
    writeFileSync(path, tarOfTree(tree, members));
  }
  const builder = createRecordingBuilder();
  try {
    await importSource(builder, { kind, path });
    return { outcome: 'ok', calls: builder.calls };
  } catch (thrown) {
    if (!(thrown instanceof DsecError)) throw thrown;
    return { outcome: thrown.code, calls: builder.calls };
  } finally {
    rmSync(path, { recursive: true, force: true });
  }
}

it('imports what the digests say, or fails with a typed error', { timeout }, async () => {
  const counts = new Map<string, number>();
  for (let i = 0; i < runs; i += 1) {
    const { outcome, calls } = await runOne(createSeededRandom(SEED * 1_000_003 + i)).catch(
      (error: unknown) => {
        throw new Error(`SEED=${SEED}, run ${i}`, { cause: error });
      },
    );
    counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
    const where = `SEED=${SEED}, run ${i}`;
    expect(calls.join(), where).not.toContain(CANARY);
    // A changed manifest may name fewer layers or another platform's; never content that no digest vouches
    // for.
    if (outcome !== 'ok') continue;
    for (const call of calls) expect(EXPECTED, where).toContain(call);
  }
  console.log(Object.fromEntries(counts));
  const codes = ['import-invalid', 'import-limit', 'invalid-argument', 'not-found', 'ok'];
  for (const outcome of counts.keys()) expect(codes).toContain(outcome);
  expect(counts.get('ok')).toBeGreaterThan(runs / 20);
  expect(counts.get('import-invalid')).toBeGreaterThan(runs / 5);
});

it('ends on indexes that name each other', async () => {
  const tree: ImageTree = new Map();
  const digests = ['a', 'b'].map((digit) => `sha256:${digit.repeat(64)}`);
  const describe = (digest: string): DescriptorFields => ({
    mediaType: OCI.index,
    digest,
    size: 300,
  });
  digests.forEach((digest, i) => {
    const other = describe(digests[1 - i] ?? '');
    const index = { schemaVersion: 2, manifests: [other, other] };
    tree.set(blobPath(digest), Buffer.from(JSON.stringify(index).padEnd(300)));
  });
  const path = join(work, 'circle');
  writeDirectory(path, layoutOf(tree, [describe(digests[0] ?? '')]));
  const importing = importSource(createRecordingBuilder(), { kind: 'oci-layout', path });
  await expect(importing).rejects.toMatchObject({ code: 'import-invalid' });
});
