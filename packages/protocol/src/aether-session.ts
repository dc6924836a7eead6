/** Messages about sessions, and about what they may do. */
import { KIB } from '@dsec/std';
import { argv, environment, filePath, identifier, PtySize, user } from './aether-fields.ts';
import { bytes, listOf, message, optional, struct, u64 } from './wire-fields.ts';

export const SessionOpen = message('session-open', {
  sessionId: identifier(1),
  /** The shell; absent: the user's own, else `/bin/sh`. */
  argv: argv(2),
  cwd: optional(filePath(3)),
  env: environment(4),
  user: user(5),
  pty: optional(struct(6, PtySize)),
});

export const SessionClose = message('session-close', { sessionId: identifier(1) });

/**
 * Answered by `done` when the shell has ended, whoever ended it, and until then not at all. `not-found`: it
 * has ended before. A session has one watch: a later one ends the earlier with `conflict`.
 */
export const SessionWatch = message('session-watch', { sessionId: identifier(1) });

/**
 * What commands, sessions, files and ports that are started from now on may do, beyond what the platform
 * takes from all. Ends the hold of a `quiesce`. Until one comes the platform's own rules are in force. Its
 * `error` (`unsupported`) changes nothing.
 */
export const SessionRules = message('session-rules', {
  /** Bit n: capability n may be kept. */
  capabilities: u64(1),
  /** Landlock's access rights that are denied but where a tree grants them. 0: no ruleset. */
  handledAccess: u64(2),
  /**
   * Opened without symbolic links when something starts. What is not there then is left out, and so denied.
   */
  trees: listOf(3, message('granted-tree', { path: filePath(1), access: u64(2) }), {
    itemsMax: 256,
    bytesMax: 40 * KIB,
  }),
  /** A classic BPF program that only denies, for commands and sessions: put on top of the platform's. */
  seccomp: optional(bytes(4, { bytesMin: 8, bytesMax: 16 * KIB })),
});
