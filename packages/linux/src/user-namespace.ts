import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { openSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { DsecError } from '@dsec/std';

/** Ids `inside` … in the namespace are `outside` … on the host, for users and groups alike. */
export interface IdRange {
  readonly inside: number;
  readonly outside: number;
  readonly count: number;
}

const START_TIMEOUT_MS = 5_000;

/**
 * Makes a user namespace with one id range and returns a descriptor of it, which alone keeps it alive. For
 * idmapped mounts, which take such a descriptor; nothing runs inside. A short-lived unshare(1) makes it,
 * since a process with threads, as Node is, may not. Needs root (or the range to be delegated).
 * `unsupported`: the host refuses.
 */
export async function createUserNamespace(range: IdRange): Promise<number> {
  // The holder says that it is inside, then waits for the end of its input.
  const holder = spawn('unshare', ['--user', 'sh', '-c', 'echo inside; exec cat'], {
    stdio: ['pipe', 'pipe', 'ignore'],
    timeout: START_TIMEOUT_MS,
    killSignal: 'SIGKILL',
  });
  const ended = new Promise<never>((_, reject) => {
    const refuse = (why: string) =>
      reject(new DsecError('unsupported', `no user namespace: unshare --user ${why}`));
    holder.once('error', (error) => refuse(error.message));
    holder.once('exit', (code, signal) => refuse(`ended with ${signal ?? code}`));
  });
  try {
    await Promise.race([once(holder.stdout, 'data'), ended]);
    const line = `${range.inside} ${range.outside} ${range.count}\n`;
    await writeFile(`/proc/${holder.pid}/uid_map`, line);
    await writeFile(`/proc/${holder.pid}/gid_map`, line);
    return openSync(`/proc/${holder.pid}/ns/user`, 'r');
  } finally {
    ended.catch(() => undefined);
    holder.stdin.destroy();
    holder.kill('SIGKILL');
  }
}
