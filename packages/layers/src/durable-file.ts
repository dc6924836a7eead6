import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, mkdir, open } from 'node:fs/promises';
import { asDsecError, type Digest, DsecError, digestOfHex } from '@dsec/std';

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants;

/** Published files are never written again, by anybody. */
const PUBLISHED_MODE = 0o444;
/** Whoever may read a store may not change it, whatever the umask of the process that made it. */
const DIRECTORY_MODE = 0o755;

/** Makes the content of a file durable, whoever wrote it. */
export async function syncFile(path: string): Promise<void> {
  const handle = await open(path, O_RDONLY | O_NOFOLLOW);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Makes one directory unless it is there; tells whether it did. Node's recursive form calls a full disk
 * ENOENT.
 */
export async function ensureDirectory(path: string, mode = DIRECTORY_MODE): Promise<boolean> {
  try {
    await mkdir(path, mode);
    return true;
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code !== 'EEXIST') throw asDsecError(thrown);
    return false;
  }
}

/** Makes one directory that must not be there. */
export async function createDirectory(path: string): Promise<void> {
  await mkdir(path, DIRECTORY_MODE);
}

/** Creates a read-only file. Fails when the name exists. The caller syncs it. */
export async function createFile(path: string, bytes: Uint8Array | string): Promise<void> {
  const handle = await open(path, O_WRONLY | O_CREAT | O_EXCL, PUBLISHED_MODE);
  try {
    await handle.writeFile(bytes);
  } finally {
    await handle.close();
  }
}

/**
 * Opens a file that somebody else may have put there. Links, FIFOs and devices are refused as
 * `data-loss`, and none of them can make the call wait. An absent file is `not-found`.
 */
export async function openRegularFile(path: string): Promise<{ handle: FileHandle; size: number }> {
  const handle = await openUnfollowed(path);
  const stats = await handle.stat();
  if (!stats.isFile()) {
    await handle.close();
    throw new DsecError('data-loss', `${path} is not a regular file`);
  }
  return { handle, size: stats.size };
}

/**
 * Waits for the reading of something that a published name promises: when it is absent, that is
 * `data-loss`, not `not-found`.
 */
export async function promised<Result>(reading: Promise<Result>): Promise<Result> {
  try {
    return await reading;
  } catch (thrown) {
    const error = asDsecError(thrown);
    if (error.code !== 'not-found') throw error;
    throw new DsecError('data-loss', `the store has lost a file: ${error.message}`, {
      cause: thrown,
    });
  }
}

/** Reads a whole file of at most `bytesMax`; a larger one is `data-loss`. */
export async function readBounded(path: string, bytesMax: number): Promise<Buffer> {
  const { handle, size } = await openRegularFile(path);
  try {
    if (size > bytesMax) {
      throw new DsecError(
        'data-loss',
        `${path} has ${size} bytes; at most ${bytesMax} belong there`,
      );
    }
    return await readExactly(handle, path, size);
  } finally {
    await handle.close();
  }
}

export function digestOf(bytes: Uint8Array): Digest {
  return digestOfHex(createHash('sha256').update(bytes).digest('hex'));
}

async function openUnfollowed(path: string): Promise<FileHandle> {
  try {
    return await open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  } catch (thrown) {
    const code = (thrown as NodeJS.ErrnoException).code;
    if (code === 'ELOOP' || code === 'ENXIO' || code === 'ENOTDIR') {
      throw new DsecError('data-loss', `${path} is not a regular file`, { cause: thrown });
    }
    throw asDsecError(thrown);
  }
}

async function readExactly(handle: FileHandle, path: string, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(length);
  for (let done = 0; done < length; ) {
    const { bytesRead } = await handle.read(bytes, done, length - done, done);
    if (bytesRead === 0)
      throw new DsecError('data-loss', `${path} became shorter while it was read`);
    done += bytesRead;
  }
  return bytes;
}
