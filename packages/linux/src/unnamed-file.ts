import { constants } from 'node:fs';
import { AT_FDCWD, type BytePath, cString, shownPath } from './byte-path.ts';
import { syscall } from './syscall.ts';

/**
 * Opens a new file without a name in the directory that is opened: it is gone with its last descriptor, also
 * when its process is killed. Not every file system has it (EOPNOTSUPP). Node's table of constants lacks it.
 */
export const O_TMPFILE = constants.O_DIRECTORY | 0o20_000_000;

const AT_SYMLINK_FOLLOW = 0x400;

/** Gives an open file a name, on its own file system, where there is nothing of that name: linkat(2). */
export function linkOpenFile(fd: number, path: BytePath): void {
  const open = cString(`/proc/self/fd/${fd}`);
  const args = [AT_FDCWD, open, AT_FDCWD, cString(path), AT_SYMLINK_FOLLOW];
  syscall('linkat', args, shownPath(path));
}
