/** Archives that hold one of everything, and what a hostile hand does to them. */
import type { Random } from '@dsec/std';
import {
  base256,
  gnuLong,
  padded,
  paxBody,
  paxHeader,
  TAR_END,
  tarHeader,
  tarMember,
  tarOf,
  withChecksum,
} from '../../packages/layers/test/sources/tar-encoder.ts';

const BLOCK = 512;
const sparse10 = '3\n0\n3\n700\n5\n1000\n0\n';

function oldSparse(): Buffer {
  const octal = (value: number) => value.toString(8).padStart(11, '0');
  const slots = [0, 3, 700, 5].map((value) => `${octal(value)}\0`).join('');
  const more = Buffer.concat([
    padded(`${octal(900)}\0${octal(2)}\0`).subarray(0, 504),
    Buffer.alloc(8),
  ]);
  const header = tarHeader({
    name: 'old-sparse',
    type: 'S',
    magic: 'gnu',
    size: 10,
    patches: [
      [386, slots],
      [482, '\x01'],
      [483, octal(1000)],
    ],
  });
  return Buffer.concat([header, more, padded('0123456789')]);
}

/** Starting points: together they reach every branch of the reader. */
export const SEEDS: readonly Buffer[] = [
  tarOf(
    tarMember({ name: './', type: '5' }),
    tarMember({ name: 'd/', type: '5' }),
    tarMember({ name: 'd/f', uid: 5, mtime: base256(-100n, 12) }, 'content of a file'),
    tarMember({ name: 'd/h', type: '1', link: 'd/f' }),
    tarMember({ name: 'd/s', type: '2', link: '../d/f' }),
    tarMember({ name: 'c', type: '3', major: 1, minor: 3 }),
    tarMember({ name: 'p', type: '6' }),
    tarMember({ name: 'd/.wh.gone' }),
    tarMember({ name: 'd/.wh..wh..opq' }),
  ),
  tarOf(
    paxHeader(
      [
        ['uid', '7'],
        ['SCHILY.xattr.user.g', 'g'],
      ],
      'g',
    ),
    paxHeader([
      ['path', `long/${'n'.repeat(150)}`],
      ['mtime', '1.5'],
      ['size', '5'],
      ['SCHILY.xattr.user.a', 'v'],
      ['SCHILY.acl.access', 'user::rw-,user:5:r--,group::r--,mask::r--,other::r--'],
    ]),
    tarMember({ name: 'cut' }, 'hello'),
    gnuLong('L', `gnu/${'l'.repeat(200)}`),
    gnuLong('K', 't'.repeat(200)),
    tarMember({ name: 'cut', type: '2', link: 'cut', magic: 'gnu' }),
  ),
  tarOf(oldSparse(), tarMember({ name: 'after' }, 'x')),
  tarOf(
    paxHeader([
      ['GNU.sparse.major', '1'],
      ['GNU.sparse.minor', '0'],
      ['GNU.sparse.name', 'sparse'],
      ['GNU.sparse.realsize', '1000'],
    ]),
    tarMember({ name: 'x' }, `${sparse10.padEnd(BLOCK, '\0')}01234567`),
    paxHeader([
      ['GNU.sparse.size', '1000'],
      ['GNU.sparse.map', '0,3,700,5,1000,0'],
    ]),
    tarMember({ name: 'sparse01' }, '01234567'),
    paxHeader([
      ['GNU.sparse.size', '1000'],
      ['GNU.sparse.offset', '10'],
      ['GNU.sparse.numbytes', '8'],
    ]),
    tarMember({ name: 'sparse00' }, '01234567'),
  ),
  tarOf(
    tarMember({ name: 'v7', magic: 'v7', type: '\0' }, 'old'),
    tarMember({ name: 'dir/', magic: 'v7', type: '\0' }),
    tarMember({ name: 'star', magic: 'star', prefix: 'pre' }, 'x'),
    tarMember({ name: 'linkdata', type: '1', link: 'v7' }, 'old once more'),
    tarMember({ name: 'label', type: 'V' }),
  ),
];

/** Offset and length of the fields of a header that change what is read. */
const FIELDS: readonly (readonly [number, number])[] = [
  [0, 100],
  [100, 8],
  [108, 8],
  [116, 8],
  [124, 12],
  [124, 12],
  [136, 12],
  [156, 1],
  [156, 1],
  [157, 100],
  [257, 8],
  [329, 8],
  [345, 155],
  [386, 96],
  [482, 1],
  [483, 12],
];
const TYPES = '\x000123456789xgXLKSVDMNAZ';
const TEXTS = [
  '',
  '/',
  '.',
  '..',
  '../..',
  'a/../b',
  '.wh.',
  '.wh..wh..opq',
  '.dsec',
  'd',
  'd/f',
  '\0',
  '\xff',
];
const NUMBERS = [
  -(2n ** 63n),
  -1n,
  0n,
  1n,
  511n,
  512n,
  513n,
  2n ** 33n,
  2n ** 53n,
  2n ** 63n - 1n,
  2n ** 88n,
];
const pick = <T>(random: Random, list: readonly T[] | string): T =>
  list[random.int(list.length)] as T;

/** One change somewhere. Where it lies in a header, the checksum is mostly made right again. */
function mutateOnce(bytes: Buffer, random: Random): Buffer {
  const blocks = Math.max(1, Math.floor(bytes.length / BLOCK));
  const at = random.int(blocks) * BLOCK;
  const block = bytes.subarray(at, at + BLOCK);
  switch (random.int(8)) {
    case 0:
      for (let i = 0; i <= random.int(4); i += 1) bytes[random.int(bytes.length)] = random.int(256);
      return bytes;
    case 1:
      return bytes.subarray(0, random.int(bytes.length + 1));
    case 2: {
      const from = random.int(blocks) * BLOCK;
      const moved = bytes.subarray(from, from + BLOCK * (1 + random.int(3)));
      return Buffer.concat([bytes.subarray(0, at), moved, bytes.subarray(at)]);
    }
    case 3:
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + BLOCK)]);
    case 4:
      return Buffer.concat([bytes.subarray(0, at), randomMember(random), bytes.subarray(at)]);
    default:
      if (block.length === BLOCK) mutateHeader(block, random);
      return bytes;
  }
}

function mutateHeader(block: Buffer, random: Random): void {
  const [offset, length] = pick(random, FIELDS);
  const field = block.subarray(offset, offset + length);
  const kind = random.int(6);
  if (length === 1) field[0] = pick<string>(random, TYPES).charCodeAt(0);
  else if (kind === 0) field.fill(0).write(pick(random, TEXTS), 'latin1');
  else if (kind === 1 && length <= 12) field.set(base256(pick(random, NUMBERS), length));
  else if (kind === 2) field.fill(0).write(random.int(2 ** 31).toString(8), 'latin1');
  else if (kind === 3) field.set(random.bytes(length));
  else field[random.int(length)] = random.int(256);
  if (random.int(10) > 0) withChecksum(block);
}

const KEYS = [
  'path',
  'linkpath',
  'size',
  'uid',
  'gid',
  'mtime',
  'GNU.sparse.major',
  'GNU.sparse.minor',
  'GNU.sparse.name',
  'GNU.sparse.map',
  'GNU.sparse.size',
  'GNU.sparse.offset',
  'GNU.sparse.numbytes',
  'SCHILY.xattr.user.x',
  'SCHILY.xattr.trusted.overlay.redirect',
  'SCHILY.acl.access',
];

/** An extended header whose records are odd, or cut and changed. */
function randomMember(random: Random): Buffer {
  const records = Array.from({ length: 1 + random.int(4) }, () => {
    const value =
      random.int(2) === 0
        ? pick<string>(random, TEXTS)
        : `${pick(random, NUMBERS)}`.repeat(1 + random.int(2));
    return [pick(random, KEYS), value] as const;
  });
  const body = paxBody(records);
  if (random.int(3) === 0 && body.length > 0) body[random.int(body.length)] = random.int(256);
  return tarMember({ name: 'x', type: pick<string>(random, 'xxgLK') }, body);
}

/** A seed with one to six changes. */
export function mutatedArchive(random: Random): Buffer {
  let bytes: Buffer = Buffer.from(pick(random, SEEDS));
  for (let changes = 1 + random.int(6); changes > 0; changes -= 1) {
    bytes = Buffer.from(mutateOnce(bytes, random));
    if (bytes.length === 0) return TAR_END;
  }
  return bytes;
}
