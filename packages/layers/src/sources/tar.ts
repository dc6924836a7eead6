import type { ByteString, LayerBuilder } from '@dsec/erofs';
import { DsecError } from '@dsec/std';
import type { ByteSource } from './byte-source.ts';
import type { ImportLimits } from './limits.ts';
import { shown } from './member-path.ts';
import type { Pace } from './pace.ts';
import { createTarReader, type EndMark, type TarMember, type TarReader } from './tar-reader.ts';

/**
 * Names by which an archive says what it removes from the layers below (OCI image specification, from aufs).
 */
const WHITEOUT_PREFIX = '.wh.';
const WHITEOUT_META_PREFIX = '.wh..wh.';
const OPAQUE_NAME = '.wh..wh..opq';

/**
 * Gives every member of a tar to the builder. A member whose name starts with `.wh.` removes something
 * instead (OCI). Throws `import-invalid`, `import-limit`, `cancelled`.
 */
export async function importTar(
  source: ByteSource,
  builder: LayerBuilder,
  context: { readonly limits: ImportLimits; readonly pace: Pace; readonly endMark?: EndMark },
): Promise<void> {
  const reader = createTarReader(source, context.limits, context.endMark);
  for (let member = await reader.next(); member !== undefined; member = await reader.next()) {
    const turn = context.pace.due();
    if (turn !== undefined) await turn;
    if (!addWhiteout(builder, member.path)) await addMember(builder, member, reader);
  }
}

/** Handles the reserved names. False for an ordinary one. */
function addWhiteout(builder: LayerBuilder, path: ByteString): boolean {
  if (!path.includes(WHITEOUT_PREFIX)) return false;
  const slash = path.lastIndexOf('/');
  const parent = path.slice(0, Math.max(slash, 0));
  const name = path.slice(slash + 1);
  const above = parent.split('/');
  // aufs kept its own records under such names; docker and containerd pass over them.
  if (above.some((part) => part.startsWith(WHITEOUT_META_PREFIX))) return true;
  if (above.some((part) => part.startsWith(WHITEOUT_PREFIX))) throw reserved(path);
  if (name === OPAQUE_NAME) {
    builder.opaque(parent);
    return true;
  }
  if (name.startsWith(WHITEOUT_META_PREFIX)) return true;
  if (!name.startsWith(WHITEOUT_PREFIX)) return false;
  const hidden = name.slice(WHITEOUT_PREFIX.length);
  if (hidden === '' || hidden === '.' || hidden === '..') throw reserved(path);
  builder.whiteout(parent === '' ? hidden : `${parent}/${hidden}`);
  return true;
}

async function addMember(
  builder: LayerBuilder,
  member: TarMember,
  reader: TarReader,
): Promise<void> {
  const { path, attributes } = member;
  if (path === '' && member.kind !== 'directory') {
    throw new DsecError('import-invalid', `the archive's root is a ${member.kind}`);
  }
  switch (member.kind) {
    case 'directory':
      return builder.directory(path, attributes);
    case 'file': {
      const sink = builder.file(path, attributes, member.sizeBytes);
      await reader.copyTo(sink);
      return sink.end();
    }
    case 'symlink':
      return builder.symlink(path, attributes, member.target);
    case 'hardlink':
      return builder.hardLink(path, member.target);
    case 'device':
      return builder.device(path, attributes, member.device);
    case 'fifo':
      return builder.fifo(path, attributes);
  }
}

function reserved(path: ByteString): DsecError {
  return new DsecError('import-invalid', `${shown(path)} uses a name reserved for whiteouts`);
}
