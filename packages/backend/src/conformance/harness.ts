import type { Backend, SandboxKey, SandboxPlan } from '../backend.ts';

/**
 * How the behaviour that the suite asks for is written inside the sandboxes of a backend: arguments of a
 * program that is there. Output is exactly what is said here.
 */
export interface ConformanceCommands {
  exit(code: number): readonly string[];
  /** Dies by that signal. */
  raise(signal: number): readonly string[];
  /** Copies standard input to standard output. */
  copyInput(): readonly string[];
  /** The numbers from 1 to `last`, a line each. */
  count(last: number): readonly string[];
  /** So many `x`, and no newline. */
  fill(bytes: number): readonly string[];
  /** A line with the text, on standard output or on standard error. */
  say(text: string, channel: 'stdout' | 'stderr'): readonly string[];
  /** `NAME=value` lines of the environment. */
  environment(): readonly string[];
  /** The working directory, a line. */
  directory(): readonly string[];
  sleep(ms: number): readonly string[];
  /** Prints `early` and ends with the code; a child goes on for minutes and holds both outputs open. */
  holdOutputs(code: number): readonly string[];
  /** Prints `grown` when several processes run for minutes, in sessions of their own, deaf to SIGTERM. */
  tree(): readonly string[];
  /** Takes memory without end. */
  fillMemory(): readonly string[];
  /** Prints `rows columns` of its terminal, and again at each change, until it is killed. */
  terminalSize(): readonly string[];
  /** Text for a session: its shell ends by itself so long after the command. */
  endShellIn(ms: number): string;
  /** Empty files `name-0`, `name-1`, … in a directory that is there. */
  manyNames(directory: string, files: number): readonly string[];
}

/** A backend with nothing of its own on the node, and what the suite needs to know of the node. */
export interface BackendHarness {
  readonly backend: Backend;
  readonly commands: ConformanceCommands;
  /**
   * A plan with a new id, a slot that no other plan of the harness has, and small limits: from 64 MiB of
   * memory, 128 processes, 16 MiB and 4,096 inodes of disk on.
   */
  plan(changes?: Partial<SandboxPlan>): SandboxPlan;
  /**
   * What there is under the names of the edge, seen from the node: processes, mounts, cgroups, directories;
   * one line each. Empty before the first `create`.
   */
  leftovers(): Promise<readonly string[]>;
  /** Lets go of the backend and opens another one on the same node, as the restart of an edge does. */
  reopen(): Promise<Backend>;
  /** Kills the agent of a sandbox from outside, behind the back of the backend. */
  killAgent(key: SandboxKey): Promise<void>;
  /** Removes what the harness has set up. */
  close(): Promise<void>;
}

/** Called for each case. */
export type BackendFactory = () => Promise<BackendHarness>;

export interface ConformanceOptions {
  /** The full counts. */
  readonly isLong?: boolean;
  /** Of everything that is drawn at random. */
  readonly seed?: number;
  /** So long what must come to pass may take; 20 seconds unless set. */
  readonly patienceMs?: number;
  /** Cases that cannot hold on this node, by name, and why: to be printed. */
  readonly skip?: Readonly<Record<string, string>>;
}

export interface ConformanceCase {
  readonly name: string;
  /** Why it is left out; then it must not be run. */
  readonly skip: string | undefined;
  /** Rejects when the backend breaks the seam. */
  run(): Promise<void>;
}
