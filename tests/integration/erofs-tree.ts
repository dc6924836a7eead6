/** Random trees for the tests of EROFS, and what a mount of each must show. */
import { createHash } from 'node:crypto';
import type { ByteString, DeviceNumber, InodeAttributes, LayerBuilder } from '@dsec/erofs';
import fc from 'fast-check';

/** What a name shows to whoever looks at it, by whatever means. */
export interface Shown {
  readonly kind: string;
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly nlink: number;
  readonly mtimeNs: bigint;
  readonly sizeBytes: number;
  /** Major and minor number of a device. */
  readonly device: string;
  readonly target: ByteString;
  /** Hex by name. */
  readonly xattrs: Readonly<Record<ByteString, string>>;
  /** sha256 of a file. */
  readonly content: string;
  /** The first path, in byte order, of the same inode. */
  readonly sameAs: ByteString;
}

export type Listing = Map<ByteString, Shown>;

/** Content as a list of runs: a hole, zeros that are written, or bytes that follow from a seed. */
export type Run =
  | { readonly kind: 'hole' | 'zeros'; readonly length: number }
  | { readonly kind: 'data'; readonly length: number; readonly seed: number };

export type Leaf =
  | { readonly kind: 'file'; readonly runs: readonly Run[] }
  | { readonly kind: 'symlink'; readonly target: ByteString }
  | { readonly kind: 'device'; readonly device: DeviceNumber }
  | { readonly kind: 'fifo' | 'socket' | 'whiteout' }
  /** A further name of an earlier leaf, counted modulo their number. */
  | { readonly kind: 'link'; readonly target: number };

export interface TreeNode {
  readonly name: ByteString;
  readonly attributes: InodeAttributes;
  readonly leaf?: Leaf;
  readonly opaque?: boolean;
  readonly children?: readonly TreeNode[];
}

export interface Tree {
  readonly attributes: InodeAttributes;
  readonly children: readonly TreeNode[];
}

const bytes = (minLength: number, maxLength: number) => fc.uint8Array({ minLength, maxLength });
const byteString = (minLength: number, maxLength: number) =>
  bytes(minLength, maxLength).map((b) => Buffer.from(b).toString('latin1'));

const isName = (name: string) => !/[\0/]/.test(name) && name !== '.' && name !== '..';
const anyName = fc.oneof(
  { weight: 6, arbitrary: fc.string({ minLength: 1, maxLength: 12, unit: 'grapheme-ascii' }) },
  { weight: 3, arbitrary: byteString(1, 20) },
  { weight: 1, arbitrary: byteString(255, 255).map((n) => n.replace(/[\0/]/g, '\xff')) },
  {
    weight: 1,
    arbitrary: fc.constantFrom('!', '-', '.a', '..a', '...', '\xff', ' ', '\n', 'a\tb'),
  },
);

const mtimeSec = fc.oneof(
  fc.integer({ min: 0, max: 2 ** 31 - 1 }),
  fc.constantFrom(-1, -(2 ** 31), -(2 ** 40), 2 ** 31, 2 ** 32, 2 ** 34, 2 ** 40),
);
const id = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 65_535 }));

const userXattr = fc.tuple(
  byteString(1, 30).map((n) => `user.${n.replace(/\0/g, '0').replace(/^overlay\./, '')}x`),
  fc.oneof(bytes(0, 40), bytes(1000, 3000)),
);
const acl = fc.tuple(id, id, fc.integer({ min: 0, max: 0o7777 })).map(([user, group, bits]) => {
  const perm = (shift: number) => (bits >> shift) & 7;
  const entries: [tag: number, perm: number, id: number][] = [
    [0x01, perm(0), 0xffff_ffff],
    [0x02, perm(3), user],
    [0x04, perm(6), 0xffff_ffff],
    [0x08, perm(9), group],
    [0x10, 7, 0xffff_ffff],
    [0x20, perm(0), 0xffff_ffff],
  ];
  const value = Buffer.alloc(4 + entries.length * 8);
  value.writeUInt32LE(2);
  entries.forEach(([tag, permissions, who], index) => {
    value.writeUInt16LE(tag, 4 + index * 8);
    value.writeUInt16LE(permissions, 6 + index * 8);
    value.writeUInt32LE(who, 8 + index * 8);
  });
  return value as Uint8Array;
});
const capability = fc.integer({ min: 1, max: 2 ** 31 - 1 }).map((bits) => {
  const value = Buffer.alloc(20);
  value.writeUInt32LE(0x0200_0001);
  value.writeUInt32LE(bits, 4);
  return value as Uint8Array;
});

type Xattrs = Map<ByteString, Uint8Array>;
const noXattrs = fc.constant<Xattrs>(new Map());
const userXattrs = fc.array(userXattr, { maxLength: 4 }).map((pairs): Xattrs => new Map(pairs));
/** A few xattrs return in many places, as in real trees, so that they are shared. */
const commonXattrs = fc.constantFrom<Xattrs>(
  new Map([['user.mime', Buffer.from('text/plain')]]),
  new Map([
    ['user.a', Buffer.alloc(0)],
    ['user.mime', Buffer.from('text/plain')],
  ]),
);
const withOne = (base: fc.Arbitrary<Xattrs>, xattr: string, value: fc.Arbitrary<Uint8Array>) =>
  fc.tuple(base, value).map(([xattrs, v]): Xattrs => new Map([...xattrs, [xattr, v]]));

const fileXattrs = fc.oneof(
  { weight: 5, arbitrary: noXattrs },
  { weight: 2, arbitrary: commonXattrs },
  { weight: 1, arbitrary: userXattrs },
  { weight: 1, arbitrary: withOne(userXattrs, 'system.posix_acl_access', acl) },
  { weight: 1, arbitrary: withOne(noXattrs, 'security.capability', capability) },
);
const directoryXattrs = fc.oneof(
  { weight: 5, arbitrary: noXattrs },
  { weight: 2, arbitrary: commonXattrs },
  { weight: 1, arbitrary: userXattrs },
  { weight: 1, arbitrary: withOne(noXattrs, 'system.posix_acl_default', acl) },
);

const attributes = (xattrs: fc.Arbitrary<Xattrs>): fc.Arbitrary<InodeAttributes> =>
  fc.record({
    mode: fc.oneof(
      fc.constantFrom(0o644, 0o755, 0o4755, 0o1777),
      fc.integer({ min: 0, max: 0o7777 }),
    ),
    uid: id,
    gid: id,
    mtimeSec,
    mtimeNsec: fc.integer({ min: 0, max: 999_999_999 }),
    xattrs,
  });

const length = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: 1, max: 9_000 }) },
  { weight: 1, arbitrary: fc.constantFrom(4095, 4096, 4097, 65_535, 65_536, 65_537, 131_072) },
  { weight: 1, arbitrary: fc.integer({ min: 60_000, max: 200_000 }) },
);
const run: fc.Arbitrary<Run> = fc.oneof(
  // Few seeds, so that the same chunks come back.
  fc.record({ kind: fc.constant('data' as const), length, seed: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ kind: fc.constantFrom('hole' as const, 'zeros' as const), length }),
);
const device: fc.Arbitrary<DeviceNumber> = fc
  .record({
    kind: fc.constantFrom('char' as const, 'block' as const),
    major: fc.integer({ min: 0, max: 4095 }),
    minor: fc.oneof(fc.integer({ min: 0, max: 300 }), fc.integer({ min: 0, max: 2 ** 20 - 1 })),
  })
  .map((d) => (d.major === 0 && d.minor === 0 ? { ...d, minor: 1 } : d));

const leaf: fc.Arbitrary<Leaf> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('file' as const),
      runs: fc.array(run, { maxLength: 4 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('symlink' as const),
      target: fc
        .oneof(byteString(1, 60), byteString(4000, 4095))
        .map((target) => target.replace(/\0/g, '/')),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('link' as const), target: fc.nat(50) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('device' as const), device }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom('fifo' as const, 'socket' as const) }),
  },
);
const whiteout = fc.record({ kind: fc.constant('whiteout' as const) });

function leafNode(hides: boolean, name: fc.Arbitrary<ByteString>): fc.Arbitrary<TreeNode> {
  const any = hides
    ? fc.oneof({ weight: 6, arbitrary: leaf }, { weight: 1, arbitrary: whiteout })
    : leaf;
  return any.chain((what) =>
    fc.record({
      name,
      leaf: fc.constant(what),
      attributes: attributes(what.kind === 'file' ? fileXattrs : noXattrs),
    }),
  );
}

const distinct = { selector: (node: TreeNode) => node.name } as const;

interface TreeOptions {
  /** Adds whiteouts and opaque directories. */
  readonly hides: boolean;
  /** The only names there are, for trees that meet each other. */
  readonly names?: readonly ByteString[];
}

function nodes(options: TreeOptions, depth: number): fc.Arbitrary<TreeNode[]> {
  const { hides, names } = options;
  const name = names === undefined ? anyName : fc.constantFrom(...names);
  const branch = () =>
    fc.record({
      name,
      attributes: attributes(directoryXattrs),
      opaque: hides ? fc.boolean() : fc.constant(false),
      children: nodes(options, depth - 1),
    });
  const node =
    depth === 0
      ? leafNode(hides, name)
      : fc.oneof(
          { weight: 3, arbitrary: leafNode(hides, name) },
          { weight: 2, arbitrary: branch() },
        );
  return fc.uniqueArray(
    node.filter((each) => isName(each.name)),
    { maxLength: 8, ...distinct },
  );
}

export function trees(options: TreeOptions): fc.Arbitrary<Tree> {
  return fc.record({
    attributes: attributes(directoryXattrs),
    children: nodes(options, 3).map((children) => children.filter((node) => node.name !== '.dsec')),
  });
}

export function bytesOfRun(run: Run): Buffer {
  const out = Buffer.alloc(run.length);
  if (run.kind !== 'data') return out;
  let state = run.seed;
  for (let index = 0; index < out.length; index += 1) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    out[index] = state >>> 16;
  }
  return out;
}

export interface PlacedNode {
  readonly path: ByteString;
  readonly node: TreeNode;
}

/** The nodes with their paths, directories before what they hold. Links to nothing are left out. */
export function placedNodes(tree: Tree): PlacedNode[] {
  const placed: PlacedNode[] = [];
  const place = (parent: ByteString, children: readonly TreeNode[]) => {
    for (const node of children) {
      const path = parent === '' ? node.name : `${parent}/${node.name}`;
      placed.push({ path, node });
      if (node.children !== undefined) place(path, node.children);
    }
  };
  place('', tree.children);
  const linkable: PlacedNode[] = [];
  return placed.filter(({ node, path }) => {
    if (node.leaf?.kind === 'link') return linkable.length > 0;
    if (node.leaf !== undefined && node.leaf.kind !== 'whiteout') linkable.push({ path, node });
    return true;
  });
}

/** Gives the tree to a builder as a source would. */
export function feed(builder: LayerBuilder, tree: Tree): void {
  builder.directory('', tree.attributes);
  const linkable: ByteString[] = [];
  for (const { path, node } of placedNodes(tree)) {
    const { leaf: what, attributes: head } = node;
    if (what === undefined) {
      builder.directory(path, head);
      if (node.opaque) builder.opaque(path);
      continue;
    }
    if (what.kind === 'whiteout') builder.whiteout(path);
    else if (what.kind === 'link') builder.hardLink(path, targetOf(linkable, what.target));
    else if (what.kind === 'file') feedFile(builder, path, head, what.runs);
    else if (what.kind === 'symlink') builder.symlink(path, head, what.target);
    else if (what.kind === 'device') builder.device(path, head, what.device);
    else builder[what.kind](path, head);
    if (what.kind !== 'whiteout' && what.kind !== 'link') linkable.push(path);
  }
}

function feedFile(
  builder: LayerBuilder,
  path: ByteString,
  head: InodeAttributes,
  runs: readonly Run[],
): void {
  const sink = builder.file(
    path,
    head,
    runs.reduce((sum, each) => sum + each.length, 0),
  );
  for (const each of runs) {
    if (each.kind === 'hole') sink.hole(each.length);
    else sink.write(bytesOfRun(each));
  }
  sink.end();
}

function targetOf<T>(targets: readonly T[], target: number): T {
  return targets[target % targets.length] as T;
}

const WHITEOUT: InodeAttributes = {
  mode: 0,
  uid: 0,
  gid: 0,
  mtimeSec: 0,
  mtimeNsec: 0,
  xattrs: new Map(),
};

/** What must be seen of a tree: worked out from the tree alone, without any code of the package. */
export function expectedListing(tree: Tree): Listing {
  const draft = new Map<ByteString, { inode: PlacedNode; node: TreeNode }>();
  const linkable: PlacedNode[] = [];
  for (const placed of placedNodes(tree)) {
    const what = placed.node.leaf;
    const inode = what?.kind === 'link' ? targetOf(linkable, what.target) : placed;
    draft.set(placed.path, { inode, node: inode.node });
    if (what !== undefined && what.kind !== 'link' && what.kind !== 'whiteout')
      linkable.push(placed);
  }

  const listing: Listing = new Map();
  const root: TreeNode = { name: '', attributes: tree.attributes, children: tree.children };
  listing.set('', show(root, '', 2 + countDirectories(root)));
  for (const [path, { inode, node }] of draft) {
    const names = [...draft].filter(([, other]) => other.inode === inode).map(([p]) => p);
    const links = node.leaf === undefined ? 2 + countDirectories(node) : names.length;
    listing.set(path, show(node, names.sort()[0] ?? path, links));
  }
  return listing;
}

function countDirectories(node: TreeNode): number {
  return node.children?.filter((child) => child.leaf === undefined).length ?? 0;
}

function show(node: TreeNode, sameAs: ByteString, nlink: number): Shown {
  const what = node.leaf;
  const head = what?.kind === 'whiteout' ? WHITEOUT : node.attributes;
  const runs = what?.kind === 'file' ? what.runs : [];
  const target = what?.kind === 'symlink' ? what.target : '';
  const xattrs = new Map(head.xattrs);
  if (node.opaque) xattrs.set('trusted.overlay.opaque', Buffer.from('y'));
  return {
    kind: kindOf(what),
    mode: head.mode,
    uid: head.uid,
    gid: head.gid,
    nlink,
    mtimeNs: BigInt(head.mtimeSec) * 1_000_000_000n + BigInt(head.mtimeNsec),
    sizeBytes: target.length + runs.reduce((sum, each) => sum + each.length, 0),
    device: what?.kind === 'device' ? `${what.device.major}:${what.device.minor}` : '0:0',
    target,
    xattrs: Object.fromEntries([...xattrs].map(([n, v]) => [n, Buffer.from(v).toString('hex')])),
    content: what?.kind === 'file' ? sha256(Buffer.concat(runs.map(bytesOfRun))) : '',
    sameAs,
  };
}

function kindOf(what: Leaf | undefined): string {
  if (what === undefined) return 'directory';
  if (what.kind === 'whiteout') return 'char';
  return what.kind === 'device' ? what.device.kind : what.kind;
}

export function sha256(data: Uint8Array): string {
  return createHash('sha256').update(data).digest('hex');
}
