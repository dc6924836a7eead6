import type { ByteString, FileSink, InodeAttributes, LayerBuilder } from '@dsec/erofs';
import { DsecError } from '@dsec/std';

/** One call of a builder, as text that a test can compare. */
export interface RecordingBuilder extends LayerBuilder {
  readonly calls: string[];
  /** The attributes of the last call for a path. */
  readonly attributes: Map<ByteString, InodeAttributes>;
  readonly contents: Map<ByteString, Buffer>;
}

export interface RecordingOptions {
  /** Files up to this size are kept in `contents`. */
  readonly keptBytesMax?: number;
  readonly entriesMax?: number;
  readonly contentBytesMax?: number;
}

/**
 * A builder that writes down what it is told, and enforces only what a source relies on: sizes and two
 * limits.
 */
export function createRecordingBuilder(options: RecordingOptions = {}): RecordingBuilder {
  const { keptBytesMax = 1 << 20, entriesMax = 1e6, contentBytesMax = 2 ** 40 } = options;
  const calls: string[] = [];
  const attributes = new Map<ByteString, InodeAttributes>();
  const contents = new Map<ByteString, Buffer>();
  const progress = { entries: 0, contentBytes: 0 };
  let announced = 0;

  const record = (call: string, path?: ByteString, given?: InodeAttributes) => {
    progress.entries += 1;
    if (progress.entries > entriesMax) throw new DsecError('import-limit', 'entriesMax');
    calls.push(call);
    if (path !== undefined && given !== undefined) attributes.set(path, given);
  };

  const openFile = (path: ByteString, given: InodeAttributes, sizeBytes: number): FileSink => {
    announced += sizeBytes;
    if (announced > contentBytesMax) throw new DsecError('import-limit', 'contentBytesMax');
    record(`file ${path} ${sizeBytes}`, path, given);
    const kept = sizeBytes <= keptBytesMax ? Buffer.alloc(sizeBytes) : undefined;
    let at = 0;
    const advance = (length: number) => {
      at += length;
      progress.contentBytes += length;
      if (at > sizeBytes) throw new DsecError('import-invalid', `${path}: too much content`);
    };
    return {
      write(bytes) {
        advance(bytes.length);
        kept?.set(bytes, at - bytes.length);
      },
      hole(length) {
        advance(length);
        calls.push(`hole ${at - length} ${length}`);
      },
      end() {
        if (at !== sizeBytes) throw new DsecError('import-invalid', `${path}: content is short`);
        if (kept !== undefined) contents.set(path, kept);
      },
    };
  };

  return {
    calls,
    attributes,
    contents,
    progress,
    directory: (path, given) => record(`directory ${path}`, path, given),
    file: openFile,
    symlink: (path, given, target) => record(`symlink ${path} -> ${target}`, path, given),
    hardLink: (path, target) => record(`link ${path} = ${target}`),
    device: (path, given, { kind, major, minor }) =>
      record(`${kind} ${path} ${major}:${minor}`, path, given),
    fifo: (path, given) => record(`fifo ${path}`, path, given),
    socket: (path, given) => record(`socket ${path}`, path, given),
    whiteout: (path) => record(`whiteout ${path}`),
    opaque: (path) => record(`opaque ${path}`),
    nextSourceLayer: () => record('layer'),
    finish() {
      throw new DsecError('unsupported', 'a recording builder makes no layer');
    },
  };
}
