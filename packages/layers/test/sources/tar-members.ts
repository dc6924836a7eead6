import { expect } from 'vitest';
import { IMPORT_LIMITS_DEFAULT } from '../../src/sources/limits.ts';
import { createTarReader, type EndMark, type TarMember } from '../../src/sources/tar-reader.ts';
import { errorWith } from './scratch.ts';
import { memorySource } from './tar-encoder.ts';

const limits = IMPORT_LIMITS_DEFAULT;

/** Every member, with the content of files as one string with holes as `<length>`. */
export async function readMembers(
  archive: Buffer,
  given = limits,
  piece?: number,
  endMark?: EndMark,
) {
  const reader = createTarReader(memorySource(archive, piece), given, endMark);
  const members: (TarMember & { content?: string })[] = [];
  for (let member = await reader.next(); member !== undefined; member = await reader.next()) {
    if (member.kind !== 'file') {
      members.push(member);
      continue;
    }
    let content = '';
    await reader.copyTo({
      write: (bytes) => {
        content += Buffer.from(bytes).toString('latin1');
      },
      hole: (length) => {
        content += `<${length}>`;
      },
    });
    members.push({ ...member, content });
  }
  return members;
}

/** Reading the archive must fail in this way. */
export const refusesArchive = (archive: Buffer, code: string, message?: RegExp, given = limits) =>
  expect(readMembers(archive, given)).rejects.toThrowError(errorWith(code, message));
