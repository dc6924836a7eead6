import { closeSync, constants, openSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { basename, dirname } from 'node:path';

/** Linux: sun_path without its NUL. */
export const SOCKET_PATH_BYTES_MAX = 107;

/**
 * Connects to a unix socket, also to one whose path is longer than the kernel takes: then by its name in
 * its directory, through a descriptor that is closed again at once. A directory that is not there shows as
 * the socket's `error`, as any other failure.
 */
export function connectUnix(path: string, options: { allowHalfOpen?: boolean } = {}): Socket {
  if (Buffer.byteLength(path) <= SOCKET_PATH_BYTES_MAX) return connect({ path, ...options });
  const directory = openOrUndefined(dirname(path));
  // The kernel itself says what is wrong with a name in a directory that cannot be opened.
  if (directory === undefined) return connect({ path: '/proc/self/fd/none', ...options });
  try {
    // Node calls connect(2) before it returns.
    return connect({ path: `/proc/self/fd/${directory}/${basename(path)}`, ...options });
  } finally {
    closeSync(directory);
  }
}

function openOrUndefined(path: string): number | undefined {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_DIRECTORY);
  } catch {
    return undefined;
  }
}
