import Type, { type Static } from 'typebox';
import { FILE_KINDS } from '../aether-frames.ts';
import { byteCount, count, cursor, integer, listOfMax, record, words } from '../names.ts';
import { base64 } from './byte-text.ts';
import { PAGE_LIMIT_MAX, UserText } from './sandbox.ts';

const PATH_LENGTH_MAX = 4095;
const NAME_LENGTH_MAX = 255;

const pathText = Type.Optional(
  Type.String({
    minLength: 1,
    maxLength: PATH_LENGTH_MAX,
    description: 'UTF-8 path; relative ones start at the working directory of the sandbox.',
  }),
);
const pathBase64 = Type.Optional(
  base64(PATH_LENGTH_MAX, 'The same as base64 of its bytes, for a path that is not UTF-8.'),
);
const mode = integer(0, 0o7777, 'Permission bits, as a decimal number.');

/** Exactly one of the two, see `byte-text.ts`. */
const path = { path: pathText, pathBase64 };
/** Whose rights are used. Absent: the sandbox's default user. */
const user = { user: Type.Optional(UserText) };

export const FileReadQuery = record('FileReadQuery', {
  ...path,
  ...user,
  offset: Type.Optional(byteCount()),
  lengthBytes: Type.Optional(byteCount('Absent: to the end of the file.')),
});

export const FileWriteQuery = record(
  'FileWriteQuery',
  {
    ...path,
    ...user,
    mode: Type.Optional(mode),
    createParents: Type.Optional(Type.Boolean()),
    exclusive: Type.Optional(
      Type.Boolean({ description: 'Refuse with already-exists instead of replacing.' }),
    ),
  },
  'The file appears under its name when all bytes have come; until then readers see the old one, or none.',
);

export const FileStatQuery = record('FileStatQuery', {
  ...path,
  ...user,
  followSymlinks: Type.Optional(Type.Boolean({ description: 'Absent: true.' })),
});

export const FileListQuery = record('FileListQuery', {
  ...path,
  ...user,
  limit: Type.Optional(integer(1, PAGE_LIMIT_MAX)),
  cursor: Type.Optional(cursor),
});

export const FileRemoveQuery = record('FileRemoveQuery', {
  ...path,
  ...user,
  recursive: Type.Optional(Type.Boolean()),
});

export const DirectoryCreate = record('DirectoryCreate', {
  ...path,
  ...user,
  mode: Type.Optional(mode),
  createParents: Type.Optional(Type.Boolean()),
});

export const FileMove = record('FileMove', {
  source: pathText,
  sourceBase64: pathBase64,
  target: pathText,
  targetBase64: pathBase64,
  ...user,
  replace: Type.Optional(Type.Boolean()),
});

export const FileEntry = record(
  'FileEntry',
  {
    name: Type.String({ maxLength: NAME_LENGTH_MAX }),
    nameBase64: Type.Optional(base64(NAME_LENGTH_MAX)),
    kind: words('FileKind', FILE_KINDS),
    mode,
    uid: count(),
    gid: count(),
    sizeBytes: byteCount(),
    allocatedBytes: byteCount('Space taken, less than the size for a file with holes.'),
    links: count(),
    mtimeSeconds: Type.Integer({
      minimum: Number.MIN_SAFE_INTEGER,
      maximum: Number.MAX_SAFE_INTEGER,
      description: 'Since the Unix epoch; `mtimeNanoseconds` is added.',
    }),
    mtimeNanoseconds: integer(0, 999_999_999),
    symlinkTarget: Type.Optional(Type.String({ maxLength: PATH_LENGTH_MAX })),
    symlinkTargetBase64: Type.Optional(base64(PATH_LENGTH_MAX)),
  },
  'The forms in base64 are there where the others are not exact.',
);
export type FileEntry = Static<typeof FileEntry>;

export const FilePage = record(
  'FilePage',
  {
    entries: listOfMax(FileEntry, PAGE_LIMIT_MAX),
    cursor: Type.Optional(cursor),
  },
  'In the order of the directory; entries made or removed meanwhile may or may not be seen.',
);
export type FilePage = Static<typeof FilePage>;
