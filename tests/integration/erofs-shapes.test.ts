/** Trees of extreme shape, and layers over many blobs, seen by the kernel. */
import { closeSync, openSync, readFileSync, readSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type InodeAttributes, type LayerBuilder, mergeLayers, validateLayer } from '@dsec/erofs';
import { getXattr, listXattrs, mountErofs } from '@dsec/linux';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sha256 } from './erofs-tree.ts';
import {
  fsck,
  isRoot,
  type LayerFiles,
  LIMITS,
  listHost,
  listImage,
  mountLayer,
  openFiles,
  openWorkshop,
  oracle,
  plain,
  withMount,
} from './erofs-world.ts';

const workshop = openWorkshop();
afterAll(() => workshop.remove());
const fsckPath = oracle('fsck.erofs');
if (!isRoot) console.warn('erofs-shapes: skipped, since mounting needs root');

const head: InodeAttributes = {
  mode: 0o755,
  uid: 0,
  gid: 0,
  mtimeSec: 1,
  mtimeNsec: 2,
  xattrs: new Map(),
};

function addFile(b: LayerBuilder, path: string, content: string | Buffer): void {
  const bytes = Buffer.from(content);
  const sink = b.file(path, head, bytes.length);
  sink.write(bytes);
  sink.end();
}

/** Mounts, and checks that our reader and fsck agree with the kernel about all of it. */
function seen(
  layer: LayerFiles,
  look: (root: string) => void,
  others: readonly string[] = [],
): void {
  const blobs = [...(layer.built.blob === undefined ? [] : [layer.blobPath]), ...others];
  if (fsckPath !== undefined) expect(fsck(fsckPath, layer.metaPath, blobs)).toBe('');
  const opened = openFiles(layer.metaPath, blobs);
  withMount(mountLayer(layer.metaPath, blobs), (root) => {
    expect(plain(listHost(root))).toEqual(plain(listImage(opened.image)));
    look(root);
  });
  opened.close();
}

describe.runIf(isRoot)('a tree (needs root)', () => {
  it('may have a directory of thousands of the longest names', () => {
    const names = Array.from({ length: 3000 }, (_, n) => `${n}`.padStart(255, '\xfe'));
    const layer = workshop.build((b) => {
      for (const name of names) b.fifo(`wide/${name}`, head);
      b.fifo('wide/-before-the-dots', head);
    });
    seen(layer, (root) => {
      const found = [...listHost(`${root}/wide`).keys()].filter((path) => path !== '');
      expect(found.sort()).toEqual(['-before-the-dots', ...names].sort());
      expect(statSync(Buffer.from(`${root}/wide/${names[2999]}`, 'latin1')).isFIFO()).toBe(true);
    });
  });

  it('may be as deep as the limit', () => {
    const deep = 'level/'.repeat(LIMITS.depthMax - 1);
    const layer = workshop.build((b) => addFile(b, `${deep}end`, 'bottom'));
    seen(layer, (root) => expect(readFileSync(`${root}/${deep}end`, 'utf8')).toBe('bottom'));
  });

  it('may have hundreds of xattrs on an inode, and long ones', () => {
    const many = new Map(
      Array.from({ length: 300 }, (_, n) => [`user.name${n}`, Buffer.from(`value ${n}`)]),
    );
    const long = new Map([['user.long', Buffer.alloc(60_000, 'x')]]);
    const layer = workshop.build((b) => {
      b.directory('a', { ...head, xattrs: many });
      b.directory('b', { ...head, xattrs: many });
      b.directory('c', { ...head, xattrs: long });
    });
    seen(layer, (root) => {
      for (const name of ['a', 'b']) {
        expect(listXattrs(`${root}/${name}`).sort()).toEqual([...many.keys()].sort());
        expect(getXattr(`${root}/${name}`, 'user.name299')?.toString()).toBe('value 299');
      }
      expect(getXattr(`${root}/c`, 'user.long')?.length).toBe(60_000);
    });
  });

  it('may have a sparse file past 4 GiB', () => {
    const size = 6 * 2 ** 30 + 5;
    const layer = workshop.build((b) => {
      const sink = b.file('sparse', head, size);
      sink.write(Buffer.from('begin'));
      sink.hole(size - 8);
      sink.write(Buffer.from('end'));
      sink.end();
    });
    withMount(mountLayer(layer.metaPath, [layer.blobPath]), (root) => {
      expect(statSync(`${root}/sparse`).size).toBe(size);
      const fd = openSync(`${root}/sparse`, 'r');
      const bytes = Buffer.alloc(8);
      readSync(fd, bytes, 0, 8, 0);
      expect(bytes.toString('latin1')).toBe('begin\0\0\0');
      readSync(fd, bytes, 0, 8, size - 8);
      expect(bytes.toString('latin1')).toBe('\0\0\0\0\0end');
      readSync(fd, bytes, 0, 8, 5 * 2 ** 30);
      expect(bytes.every((byte) => byte === 0)).toBe(true);
      closeSync(fd);
    });
    expect(statSync(layer.blobPath).size).toBe(65_536 + 4096);
  });
});

describe.runIf(isRoot)('a layer over other blobs (needs root)', () => {
  const sources: LayerFiles[] = [];
  const content = (index: number) => Buffer.alloc(70_000, `content ${index} `);

  beforeAll(() => {
    for (let index = 0; index < 40; index += 1) {
      sources.push(workshop.build((b) => addFile(b, `${index}`, content(index))));
    }
  });

  const sourceOf = ({ built }: LayerFiles) => {
    if (built.blob === undefined) throw new Error('a source has a blob');
    return { blobId: built.blob.blobId, index: built.blob.index };
  };

  it('reads each chunk from the blob that has it', () => {
    const used = sources.slice(0, 16);
    const layer = workshop.build(
      (b) => {
        for (const index of used.keys()) addFile(b, `${index}`, content(index));
        addFile(b, 'own', 'new');
      },
      { dedupSources: used.map(sourceOf) },
    );
    expect(layer.built.devices).toHaveLength(17);
    const blobs = used.map(({ blobPath }) => blobPath);
    seen(
      layer,
      (root) => {
        for (let index = 0; index < 16; index += 1) {
          expect(sha256(readFileSync(`${root}/${index}`))).toBe(sha256(content(index)));
        }
      },
      blobs,
    );
  });

  it('may have a device table of more than one block', () => {
    const valid = sources.map(({ built }) => validateLayer(built.meta, {}, LIMITS));
    const options = { stripWhiteouts: true, metaBytesMax: LIMITS.metaBytesMax };
    const merged = mergeLayers(valid, options);
    const metaPath = join(workshop.path, 'many.meta');
    writeFileSync(metaPath, merged.meta);
    const pathOf = new Map(sources.map((s) => [s.built.blob?.blobId, s.blobPath]));
    const blobs = merged.devices.map(({ blobId }) => pathOf.get(blobId) ?? 'missing');
    if (fsckPath !== undefined) expect(fsck(fsckPath, metaPath, blobs)).toBe('');
    withMount(mountLayer(metaPath, blobs), (root) => {
      for (let index = 0; index < 40; index += 1) {
        expect(sha256(readFileSync(`${root}/${index}`))).toBe(sha256(content(index)));
      }
    });
  });

  it('is also one disk: metadata and blobs one after another', () => {
    const [first, second] = sources as [LayerFiles, LayerFiles];
    const layer = workshop.build(
      (b) => {
        addFile(b, 'x', content(1));
        addFile(b, 'y', content(0));
        addFile(b, 'own', 'new');
      },
      { dedupSources: [first, second].map(sourceOf) },
    );
    const parts = [layer.metaPath, layer.blobPath, first.blobPath, second.blobPath];
    const disk = join(workshop.path, 'disk');
    writeFileSync(disk, Buffer.concat(parts.map((path) => readFileSync(path))));
    withMount(mountErofs({ metaPath: disk, devices: [] }), (root) => {
      expect(readFileSync(`${root}/x`).equals(content(1))).toBe(true);
      expect(readFileSync(`${root}/y`).equals(content(0))).toBe(true);
      expect(readFileSync(`${root}/own`, 'utf8')).toBe('new');
    });
  });

  it('reads the same past the page cache of its files', () => {
    const [first] = sources as [LayerFiles];
    const mount = mountErofs({
      metaPath: first.metaPath,
      devices: [first.blobPath],
      directIo: true,
    });
    withMount(mount, (root) => {
      expect(readFileSync(`${root}/0`).equals(content(0))).toBe(true);
    });
  });
});
