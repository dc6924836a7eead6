import type { SessionRulesFields } from '@dsec/protocol';
import { type Clock, DsecError, type Random } from '@dsec/std';
import type { SimFiles, SimUser } from './files.ts';
import type { PortTable } from './ports.ts';
import type { ProcessTable } from './processes.ts';
import type { ProgramTable } from './program.ts';
import type { RunningTime } from './running-time.ts';

/** What the parts of a simulated agent share: the sandbox around them. */
export interface AgentContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly time: RunningTime;
  readonly processes: ProcessTable;
  readonly files: SimFiles;
  readonly programs: ProgramTable;
  readonly ports: PortTable;
  /** Nothing starts until the host has said what holds. */
  isHeld: boolean;
  /** What the host said last. */
  rules: SessionRulesFields | undefined;
}

export const HELD = new DsecError('unavailable', 'the policy of the sandbox changes: try again');

const DEFAULT_ENVIRONMENT: readonly (readonly [string, string])[] = [
  ['PATH', '/usr/bin:/bin'],
  ['HOME', '/'],
];

const USERS: Readonly<Record<string, number>> = { root: 0, daemon: 1, bin: 2, nobody: 65534 };

/** A name, a number, or `user:group`; absent: root. */
export function userOf(text: string | undefined): SimUser {
  const [name = 'root', group] = (text ?? 'root').split(':');
  const uid = idOf(name);
  return { uid, gid: group === undefined ? uid : idOf(group) };
}

function idOf(name: string): number {
  const id = /^\d{1,9}$/.test(name) ? Number(name) : USERS[name];
  if (id === undefined) throw new DsecError('not-found', `no such user or group: ${name}`);
  return id;
}

/** Bytes of the wire as the text that names have in the simulator. */
export function latin1(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
}

/** `NAME=value` lines over a few defaults. */
export function environmentOf(lines: readonly Uint8Array[]): Map<string, string> {
  const env = new Map(DEFAULT_ENVIRONMENT);
  for (const line of lines.map(latin1)) {
    const at = line.indexOf('=');
    if (at > 0) env.set(line.slice(0, at), line.slice(at + 1));
  }
  return env;
}

/** A working directory that is there. */
export function directoryOf({ files }: AgentContext, cwd: Uint8Array | undefined): string {
  if (cwd === undefined) return '/';
  const path = latin1(cwd);
  let kind: string;
  try {
    kind = files.stat(path, true).kind;
  } catch (cause) {
    throw new DsecError('not-found', `the working directory ${path} does not exist`, { cause });
  }
  if (kind === 'directory') return path;
  throw new DsecError('invalid-argument', `the working directory ${path} is none`);
}
