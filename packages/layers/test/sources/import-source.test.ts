import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, openSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { MIB } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import {
  type ImportOptions,
  type ImportProgress,
  type ImportSource,
  importSource,
} from '../../src/sources/import-source.ts';
import { IMPORT_LIMITS_DEFAULT } from '../../src/sources/limits.ts';
import { layer, savedImage, simpleLayout, writeTar, writeTree } from './image-encoder.ts';
import { createRecordingBuilder } from './recording-builder.ts';
import { errorWith, scratchDirectory } from './scratch.ts';
import { tarMember, tarOf } from './tar-encoder.ts';

const scratch = scratchDirectory();
const tar = tarOf(tarMember({ name: 'f' }, 'content'));
const at = (name: string) => join(scratch, name);

writeFileSync(at('plain.tar'), tar);
writeFileSync(at('packed'), gzipSync(tar));
mkdirSync(at('directory'));
writeFileSync(at('directory/f'), 'content');
writeFileSync(at('directory/skipped'), '');
const one = layer(tarMember({ name: 'f' }, 'content'));
writeTree(at('layout'), simpleLayout({ layers: [one] }));
writeTar(at('layout.tar'), simpleLayout({ layers: [one] }));
writeTar(at('saved.tar'), savedImage([one]));
writeTree(at('saved'), savedImage([one]));

async function importFrom(source: ImportSource, options: ImportOptions = {}) {
  const builder = createRecordingBuilder();
  const info = await importSource(builder, source, options);
  return { ...info, calls: builder.calls };
}

const openDescriptors = () => readdirSync('/proc/self/fd').length;

describe('every kind of source', () => {
  it.each<[string, ImportSource, string]>([
    ['a tar', { kind: 'tar', path: at('plain.tar') }, 'tar'],
    ['a compressed tar', { kind: 'tar', path: at('packed') }, 'tar'],
    [
      'a directory',
      { kind: 'directory', path: at('directory'), exclude: ['skipped'] },
      'directory',
    ],
    ['a layout', { kind: 'oci-layout', path: at('layout') }, 'oci-layout'],
    ['a layout in a tar', { kind: 'oci-layout', path: at('layout.tar') }, 'oci-layout'],
    ['an archive of docker', { kind: 'docker-archive', path: at('saved.tar') }, 'docker-archive'],
    [
      'an unpacked archive of docker',
      { kind: 'docker-archive', path: at('saved') },
      'docker-archive',
    ],
    ['auto: a tar', { kind: 'auto', path: at('packed') }, 'tar'],
    [
      'auto: a directory',
      { kind: 'auto', path: at('directory'), exclude: ['skipped'] },
      'directory',
    ],
    ['auto: a layout', { kind: 'auto', path: at('layout') }, 'oci-layout'],
    ['auto: a layout in a tar', { kind: 'auto', path: at('layout.tar') }, 'oci-layout'],
    ['auto: an archive of docker', { kind: 'auto', path: at('saved.tar') }, 'docker-archive'],
  ])('%s', async (_, source, kind) => {
    const before = openDescriptors();
    const { calls, ...info } = await importFrom(source);
    expect(calls.filter((call) => call !== 'directory ')).toEqual(['file f 7']);
    const isImage = kind === 'oci-layout' || kind === 'docker-archive';
    expect(info).toEqual({
      kind,
      image: isImage ? expect.objectContaining({ command: expect.anything() }) : null,
      digest: isImage ? expect.stringMatching(/^sha256:/) : null,
    });
    expect(openDescriptors()).toBe(before);
  });

  it('a descriptor of a file, which is closed', async () => {
    const before = openDescriptors();
    const fd = openSync(at('plain.tar'), 'r');
    expect((await importFrom({ kind: 'tar', fd })).calls).toEqual(['file f 7']);
    expect(openDescriptors()).toBe(before);
  });

  it('a descriptor of a pipe, which is closed', async () => {
    execFileSync('mkfifo', [at('pipe')]);
    spawn('sh', ['-c', 'gzip < "$0" > "$1"', at('plain.tar'), at('pipe')], { stdio: 'ignore' });
    const before = openDescriptors();
    expect((await importFrom({ kind: 'tar', path: at('pipe') })).calls).toEqual(['file f 7']);
    await expect.poll(openDescriptors).toBe(before);
  });
});

it('a pipe that gives nothing is no empty tree', async () => {
  execFileSync('mkfifo', [at('nothing-pipe')]);
  spawn('sh', ['-c', ': > "$0"', at('nothing-pipe')], { stdio: 'ignore' });
  const importing = importFrom({ kind: 'tar', path: at('nothing-pipe') });
  await expect(importing).rejects.toThrowError(errorWith('import-invalid', /empty/));
});

describe('errors', () => {
  it.each<[string, ImportSource, string]>([
    ['a missing tar', { kind: 'tar', path: at('nothing') }, 'not-found'],
    ['a missing directory', { kind: 'directory', path: at('nothing') }, 'not-found'],
    ['a missing source', { kind: 'auto', path: at('nothing') }, 'not-found'],
    ['a missing layout', { kind: 'oci-layout', path: at('nothing') }, 'not-found'],
    ['a directory for a tar', { kind: 'tar', path: at('directory') }, 'invalid-argument'],
    ['a tar for a directory', { kind: 'directory', path: at('plain.tar') }, 'invalid-argument'],
    ['a tar for a layout', { kind: 'oci-layout', path: at('plain.tar') }, 'import-invalid'],
    [
      'a platform that is none',
      { kind: 'oci-layout', path: at('layout'), platform: 'x' },
      'invalid-argument',
    ],
    [
      'another platform',
      { kind: 'auto', path: at('layout'), platform: 'linux/s390x' },
      'import-invalid',
    ],
    ['an unknown name', { kind: 'auto', path: at('layout'), reference: 'x' }, 'not-found'],
  ])('%s', async (_, source, code) => {
    const before = openDescriptors();
    await expect(importFrom(source)).rejects.toThrowError(errorWith(code));
    expect(openDescriptors()).toBe(before);
  });

  it('of the builder come through, and limits are obeyed', async () => {
    const limits = { ...IMPORT_LIMITS_DEFAULT, headersMax: 0 };
    await expect(importFrom({ kind: 'tar', path: at('packed') }, { limits })).rejects.toThrowError(
      errorWith('import-limit'),
    );
    const builder = createRecordingBuilder({ contentBytesMax: 3 });
    const importing = importSource(builder, { kind: 'auto', path: at('layout.tar') });
    await expect(importing).rejects.toThrowError(errorWith('import-limit', /contentBytesMax/));
  });

  it('of an abort are the same everywhere', async () => {
    for (const name of ['plain.tar', 'packed', 'directory', 'layout', 'saved.tar']) {
      const importing = importFrom(
        { kind: 'auto', path: at(name) },
        { signal: AbortSignal.abort() },
      );
      await expect(importing).rejects.toThrowError(errorWith('cancelled'));
    }
  });
});

it('tells its progress, from the bytes of the source', async () => {
  const member = tarMember({ name: 'big' }, Buffer.alloc(8 * MIB));
  const path = at('large.tar');
  writeFileSync(path, tarOf(...Array.from({ length: 20 }, () => member)));
  const told: ImportProgress[] = [];
  const builder = createRecordingBuilder();
  const { file } = builder;
  // A builder that takes its time.
  builder.file = (...args) => {
    const sink = file(...args);
    const write: typeof sink.write = (bytes) => {
      const until = performance.now() + 5;
      while (performance.now() < until);
      sink.write(bytes);
    };
    return { ...sink, write };
  };
  await importSource(builder, { kind: 'tar', path }, { onProgress: (each) => told.push(each) });
  expect(told.length).toBeGreaterThan(1);
  const bytes = told.map((each) => each.bytes);
  expect(bytes).toEqual(bytes.toSorted((a, b) => a - b));
  expect(told[0]?.bytesTotal).toBe(20 * member.length + 1024);
  expect(told.at(-1)?.entries).toBeGreaterThan(0);
});
