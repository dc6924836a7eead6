import { mkdir, open } from 'node:fs/promises';
import {
  BLOCK_BYTES,
  type BuiltLayer,
  createFileBlobSink,
  createLayerBuilder,
  type InodeAttributes,
  type LayerBuilder,
} from '@dsec/erofs';
import { parseLayerRef } from '../../src/layer-ref.ts';
import { publishLayer, stagePaths } from '../../src/publish.ts';
import { refRecordOf } from '../../src/ref-store.ts';
import { IMPORT_LIMITS_DEFAULT } from '../../src/sources/index.ts';
import { createStage, newStageName } from '../../src/stage.ts';
import { type LayerStore, stagesDirectory } from '../../src/store-layout.ts';

const attributes = (mode: number, change: Partial<InodeAttributes> = {}): InodeAttributes => ({
  mode,
  uid: 0,
  gid: 0,
  mtimeSec: 1_700_000_000,
  mtimeNsec: 0,
  xattrs: new Map(),
  ...change,
});

/** A builder with short calls for tests. */
export interface TreeWriter {
  readonly builder: LayerBuilder;
  file(path: string, content: string | Uint8Array, change?: Partial<InodeAttributes>): void;
  directory(path: string, change?: Partial<InodeAttributes>): void;
  symlink(path: string, target: string): void;
}

/** Publishes a real layer, built in this process. */
export async function buildLayer(
  store: LayerStore,
  ref: string,
  fill: (tree: TreeWriter) => void,
): Promise<BuiltLayer> {
  const stage = await createStage(stagesDirectory(store), newStageName());
  try {
    const { blob } = stagePaths(stage);
    await mkdir(blob.directory);
    const data = await open(blob.data, 'wx', 0o444);
    const builder = createLayerBuilder({
      blob: createFileBlobSink(data.fd),
      whiteouts: 'keep',
      dedupSources: [],
      limits: IMPORT_LIMITS_DEFAULT,
    });
    fill(treeWriter(builder));
    const built = builder.finish();
    await data.truncate((built.blob?.blocks ?? 0) * BLOCK_BYTES);
    await data.close();
    const parsed = parseLayerRef(ref);
    const { layerId, treeDigest } = built;
    const source = { kind: 'test', digest: null };
    const fields = { layerId, treeDigest, image: null, source, createdAtMs: 1 };
    await publishLayer(store, {
      stage,
      built,
      ref: parsed,
      record: refRecordOf(parsed, fields),
    });
    return built;
  } finally {
    await stage.discard();
  }
}

function treeWriter(builder: LayerBuilder): TreeWriter {
  return {
    builder,
    file(path, content, change) {
      const bytes = typeof content === 'string' ? Buffer.from(content) : content;
      const sink = builder.file(path, attributes(0o644, change), bytes.length);
      sink.write(bytes);
      sink.end();
    },
    directory(path, change) {
      builder.directory(path, attributes(0o755, change));
    },
    symlink(path, target) {
      builder.symlink(path, attributes(0o777), target);
    },
  };
}
