/**
 * A directory of this machine, held by descriptor. Everything in it is reached through the descriptor and by
 * one name, so that no symbolic link on the way, old or new, leads anywhere else.
 */
import { randomBytes } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import {
  type FileHandle,
  lstat,
  mkdir,
  open,
  opendir,
  rename,
  symlink,
  unlink,
} from 'node:fs/promises';
import { linkOpenFile, O_TMPFILE } from '@dsec/linux';
import { asDsecError, DsecError } from '@dsec/std';
import { show } from './place.ts';

export interface LocalDirectory {
  /** Its entries, in no order, in memory that does not grow with their number. */
  names(): AsyncGenerator<Buffer>;
  stat(name: Buffer): Promise<Stats>;
  /** A directory in it. */
  enter(name: Buffer): Promise<LocalDirectory>;
  /** The same; made when it is not there. */
  make(name: Buffer, mode: number): Promise<LocalDirectory>;
  /** A plain file in it, for reading. */
  read(name: Buffer): Promise<FileHandle>;
  /** Writes a whole file; it appears under its name, in place of what was there, when all of it has come. */
  write(name: Buffer, attributes: FileAttributes, fill: Fill): Promise<void>;
  /** Makes a link in place of what was there; what it says is not looked at. */
  link(name: Buffer, target: Buffer): Promise<void>;
  close(): Promise<void>;
}

export interface FileAttributes {
  readonly mode: number;
  readonly mtimeMs: number;
}

type Fill = (file: FileHandle) => Promise<void>;

const { O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;

/** `path` may go through symbolic links: it is what the user typed. */
export async function openLocalDirectory(path: Buffer): Promise<LocalDirectory> {
  return directoryOf(await open(path, O_RDONLY | O_DIRECTORY).catch(failure(path)));
}

function directoryOf(handle: FileHandle): LocalDirectory {
  const base = Buffer.from(`/proc/self/fd/${handle.fd}/`);
  const at = (name: Buffer) => Buffer.concat([base, checkName(name)]);
  const enter = async (name: Buffer) =>
    directoryOf(await open(at(name), O_RDONLY | O_DIRECTORY | O_NOFOLLOW).catch(failure(name)));
  /** Puts something in place under a name that nobody else takes, or leaves nothing. */
  const replace = async (name: Buffer, make: (path: Buffer) => Promise<void>) => {
    const staged = at(Buffer.from(`.dsec-${randomBytes(8).toString('hex')}`));
    try {
      await make(staged);
      await rename(staged, at(name));
    } catch (thrown) {
      await unlink(staged).catch(() => undefined);
      throw failureOf(name, thrown);
    }
  };
  return {
    enter,
    async *names() {
      // The type of Node says string even for buffers.
      const entries = await opendir(base as unknown as string, { encoding: 'buffer' as 'utf8' });
      for await (const { name } of entries) yield name as unknown as Buffer;
    },
    stat: (name) => lstat(at(name)).catch(failure(name)),
    async make(name, mode) {
      await mkdir(at(name), mode).catch((thrown: NodeJS.ErrnoException) => {
        if (thrown.code !== 'EEXIST') throw failureOf(name, thrown);
      });
      return enter(name);
    },
    async read(name) {
      const file = await open(at(name), O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(failure(name));
      if ((await file.stat()).isFile()) return file;
      await file.close();
      throw new DsecError('conflict', `${show(name)} is not a file any more`);
    },
    write: (name, { mode, mtimeMs }, fill) =>
      replace(name, async (path) => {
        // Without a name nothing of it stays when we are killed; not every file system has that.
        const unnamed = await open(base, O_WRONLY | O_TMPFILE, 0o600).catch(() => undefined);
        const file = unnamed ?? (await open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0o600));
        try {
          await fill(file);
          await file.chmod(mode);
          await file.utimes(mtimeMs / 1000, mtimeMs / 1000);
          if (unnamed !== undefined) linkOpenFile(file.fd, path);
        } finally {
          await file.close();
        }
      }),
    link: (name, target) => replace(name, (path) => symlink(target, path)),
    close: () => handle.close(),
  };
}

/** A name of one step. Those that a sandbox tells are a stranger's word. */
function checkName(name: Buffer): Buffer {
  const text = name.toString('latin1');
  if (text !== '' && text !== '.' && text !== '..' && !/[/\0]/.test(text)) return name;
  throw new DsecError('protocol', `${JSON.stringify(text)} is not the name of a file`);
}

function failureOf(name: Buffer, thrown: unknown): DsecError {
  // Of the other side, where what is written comes from.
  if (thrown instanceof DsecError) return thrown;
  const { code, message, details } = asDsecError(thrown);
  // Node names the path through the descriptor, which says nothing to anybody.
  const plain = message.replace(/ '.*'$/s, '');
  return new DsecError(code, `${show(name)}: ${plain}`, { cause: thrown, details });
}

const failure =
  (name: Buffer) =>
  (thrown: unknown): never => {
    throw failureOf(name, thrown);
  };
