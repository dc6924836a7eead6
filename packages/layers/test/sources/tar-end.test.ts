import { describe, expect, it } from 'vitest';
import { IMPORT_LIMITS_DEFAULT } from '../../src/sources/limits.ts';
import { paxHeader, TAR_END, tarMember } from './tar-encoder.ts';
import { readMembers as read, refusesArchive as refuses } from './tar-members.ts';

describe('the end', () => {
  const member = tarMember({ name: 'a' }, 'x');
  const garbage = Buffer.alloc(700, 'garbage');

  it.each<[string, Buffer]>([
    ['two blocks of zeros', Buffer.concat([member, TAR_END])],
    ['two blocks and garbage', Buffer.concat([member, TAR_END, garbage])],
    ['two blocks and another archive', Buffer.concat([member, TAR_END, member, TAR_END])],
    ['half an end mark', Buffer.concat([member, TAR_END.subarray(0, 512)])],
  ])('is %s', async (_, archive) => {
    expect(await read(archive)).toHaveLength(1);
  });

  it('is not the end of the input between two members, unless something else tells', async () => {
    for (const cut of [member, Buffer.concat([member, member])]) {
      await refuses(cut, 'import-invalid', /no end mark/);
    }
    expect(await read(member, IMPORT_LIMITS_DEFAULT, undefined, 'optional')).toHaveLength(1);
  });

  it('is at once in an empty archive', async () => {
    expect(await read(TAR_END)).toEqual([]);
    await refuses(Buffer.alloc(0), 'import-invalid', /empty/);
  });

  it('is not where an image of a file system or disk begins with zeros', async () => {
    const image = Buffer.alloc(70_000);
    image.write('_BHRfS_M', 65_600);
    await refuses(image, 'import-invalid', /begins with zeros/);
    expect(await read(Buffer.alloc(10_240))).toEqual([]);
  });

  it.each<[string, Buffer]>([
    ['in a header', member.subarray(0, 300)],
    ['before content', member.subarray(0, 512)],
    ['in padding', member.subarray(0, 800)],
    ['in a second header', Buffer.concat([member, member.subarray(0, 100)])],
    ['in an extended header', paxHeader([['path', 'x']]).subarray(0, 515)],
  ])('is not %s', async (_, archive) => {
    await refuses(archive, 'import-invalid', /ends too early/);
  });

  it('is not a single block of zeros', async () => {
    const archive = Buffer.concat([member, TAR_END.subarray(0, 512), member, TAR_END]);
    await refuses(archive, 'import-invalid', /single block of zeros/);
    await refuses(Buffer.concat([member, TAR_END.subarray(0, 512), garbage]), 'import-invalid');
  });
});
