import { describe, expect, it } from 'vitest';
import { IMPORT_LIMITS_DEFAULT } from '../../src/sources/limits.ts';
import { createPace } from '../../src/sources/pace.ts';
import { importTar } from '../../src/sources/tar.ts';
import { createRecordingBuilder } from './recording-builder.ts';
import { errorWith } from './scratch.ts';
import { type HeaderFields, memorySource, tarMember, tarOf } from './tar-encoder.ts';

async function importAll(...members: Buffer[]) {
  const builder = createRecordingBuilder();
  const context = { limits: IMPORT_LIMITS_DEFAULT, pace: createPace() };
  await importTar(memorySource(tarOf(...members)), builder, context);
  return builder;
}

it('gives every kind of member to the builder', async () => {
  const builder = await importAll(
    tarMember({ name: './', type: '5', mode: 0o711 }),
    tarMember({ name: 'd/', type: '5' }),
    tarMember({ name: 'd/f', uid: 5 }, 'content'),
    tarMember({ name: 'd/h', type: '1', link: 'd/f' }),
    tarMember({ name: 's', type: '2', link: '/d' }),
    tarMember({ name: 'c', type: '3', major: 1, minor: 5 }),
    tarMember({ name: 'b', type: '4', major: 8, minor: 0 }),
    tarMember({ name: 'p', type: '6' }),
  );
  expect(builder.calls).toEqual([
    'directory ',
    'directory d',
    'file d/f 7',
    'link d/h = d/f',
    'symlink s -> /d',
    'char c 1:5',
    'block b 8:0',
    'fifo p',
  ]);
  expect(builder.contents.get('d/f')?.toString()).toBe('content');
  expect(builder.attributes.get('')?.mode).toBe(0o711);
  expect(builder.attributes.get('d/f')?.uid).toBe(5);
});

describe('whiteouts', () => {
  it.each<[HeaderFields, string[]]>([
    [{ name: '.wh.a' }, ['whiteout a']],
    [{ name: './d/.wh.a' }, ['whiteout d/a']],
    [{ name: 'd/.wh..wh.x.wh.y' }, []],
    [{ name: 'd/.wh.a', type: '3', major: 0, minor: 0 }, ['whiteout d/a']],
    [{ name: 'd/.wh.a', type: '1', link: 'other' }, ['whiteout d/a']],
    [{ name: 'd/.wh...a' }, ['whiteout d/..a']],
    [{ name: 'd/.wh..wh..opq' }, ['opaque d']],
    [{ name: '.wh..wh..opq' }, ['opaque ']],
    [{ name: '.wh..wh.plnk', type: '5' }, []],
    [{ name: '.wh..wh.plnk/123.456' }, []],
    [{ name: '.wh..wh.orph/.wh.x' }, []],
    [{ name: 'a.wh.b' }, ['file a.wh.b 0']],
    [{ name: 'a.wh.d/.wh.b' }, ['whiteout a.wh.d/b']],
    [{ name: '.whatever' }, ['file .whatever 0']],
    [{ name: 'd/c', type: '3', major: 0, minor: 0 }, ['char d/c 0:0']],
  ])('%j', async (fields, calls) => {
    expect((await importAll(tarMember(fields))).calls).toEqual(calls);
  });

  it('have no content, whatever the archive says', async () => {
    const { calls } = await importAll(
      tarMember({ name: '.wh.a' }, 'xyz'),
      tarMember({ name: 'b' }),
    );
    expect(calls).toEqual(['whiteout a', 'file b 0']);
  });

  it.each(['.wh.', 'd/.wh..', 'd/.wh...', '.wh.d/f', 'a/.wh.d/.wh.f'])('not %s', async (name) => {
    await expect(importAll(tarMember({ name }))).rejects.toThrowError(
      errorWith('import-invalid', /reserved for whiteouts/),
    );
  });
});

it('refuses a root that is no directory', async () => {
  for (const type of ['0', '1', '2', '3', '6']) {
    const member = tarMember({ name: './', type, link: 'x', ...(type === '0' && { name: '.' }) });
    await expect(importAll(member)).rejects.toThrowError(errorWith('import-invalid', /root/));
  }
});

it('can be cancelled between members', async () => {
  const abort = new AbortController();
  const builder = createRecordingBuilder();
  const context = {
    limits: IMPORT_LIMITS_DEFAULT,
    pace: createPace({ signal: abort.signal }),
  };
  const endless = memorySource(tarOf());
  endless.fill = async () => 512;
  endless.take = () => tarMember({ name: 'same' });
  setTimeout(() => abort.abort(), 30);
  await expect(importTar(endless, builder, context)).rejects.toThrowError(errorWith('cancelled'));
});

it('takes zeros for an empty archive, but not what begins with zeros and goes on', async () => {
  const context = { limits: IMPORT_LIMITS_DEFAULT, pace: createPace() };
  const empty = createRecordingBuilder();
  await importTar(memorySource(Buffer.alloc(10_240)), empty, context);
  expect(empty.calls).toEqual([]);
  const image = Buffer.alloc(70_000);
  image.write('_BHRfS_M', 65_600);
  await expect(importTar(memorySource(image), createRecordingBuilder(), context)).rejects.toThrow(
    errorWith('import-invalid', /begins with zeros/),
  );
});
