import { DsecError } from '@dsec/std';
import type { RunningTime } from './running-time.ts';
import { unlessAborted } from './running-time.ts';

/** How a process ended: a code, or the signal that killed it. */
export type ProcessEnd =
  | { readonly exitCode: number; readonly signal?: undefined }
  | { readonly signal: number; readonly exitCode?: undefined };

export interface SimProcess {
  readonly pid: number;
  readonly name: string;
  readonly ended: Promise<ProcessEnd>;
  /** Delivers it: a handler, nothing, or the end, as Linux does by default. */
  signal(number: number): void;
}

/** What a running process does through the kernel, so to speak. Every step ends when it is killed. */
export interface ProcessSystem {
  readonly pid: number;
  readonly killed: AbortSignal;
  /** Waits for something, no longer than the process lives, and not while it is frozen or stopped. */
  wait<T>(promise: Promise<T>): Promise<T>;
  sleep(ms: number): Promise<void>;
  /** Handles a signal instead of dying of it; undefined ignores it. */
  onSignal(number: number, handler: (() => void) | undefined): void;
  /** A signal to itself: does not return when it kills. */
  raise(number: number): Promise<void>;
  /** Takes memory until the process ends. More than the sandbox may have: the process is killed. */
  allocate(bytes: number): Promise<void>;
}

export type ProcessBody = (system: ProcessSystem) => Promise<number>;

/** The processes of one sandbox. */
export interface ProcessTable {
  /** `tree`: the processes that a command has left, this one among them while it lives. */
  start(name: string, tree: Set<SimProcess>, body: ProcessBody): SimProcess;
  /** Kills all. Resolves when none is left. */
  killAll(): Promise<void>;
  limit(limits: { memoryBytesMax?: number; pidsMax?: number }): void;
  readonly count: number;
  readonly memoryBytes: number;
  readonly memoryPeakBytes: number;
  /** Processes that were killed for want of memory, since the start. */
  readonly oomKills: number;
}

export const SIGKILL = 9;
export const SIGTERM = 15;
const SIGCONT = 18;
const IGNORED_BY_DEFAULT = new Set([17, 23, 28]);
const STOPPING = new Set([19, 20, 21, 22]);
/** Linux lets nobody handle or ignore these. */
const ABSOLUTE = new Set([SIGKILL, 19]);
const PROCESS_BYTES = 64 * 1024;

export interface ProcessTableOptions {
  readonly time: RunningTime;
  readonly memoryBytesMax: number;
  readonly pidsMax: number;
}

interface Table {
  readonly time: RunningTime;
  readonly living: Set<SimProcess>;
  memoryBytesMax: number;
  pidsMax: number;
  memoryBytes: number;
  memoryPeakBytes: number;
  oomKills: number;
  lastPid: number;
}

export function createProcessTable(options: ProcessTableOptions): ProcessTable {
  const table: Table = {
    ...options,
    living: new Set(),
    memoryBytes: 0,
    memoryPeakBytes: 0,
    oomKills: 0,
    lastPid: 1,
  };
  return {
    start(name, tree, body) {
      if (table.living.size >= table.pidsMax) {
        throw new DsecError('overloaded', `the sandbox has ${table.pidsMax} processes already`);
      }
      return startProcess(table, name, tree, body);
    },
    async killAll() {
      while (table.living.size > 0) {
        const ended = [...table.living].map((process) => process.ended);
        for (const process of table.living) process.signal(SIGKILL);
        await Promise.all(ended);
      }
    },
    limit({ memoryBytesMax, pidsMax }) {
      table.memoryBytesMax = memoryBytesMax ?? table.memoryBytesMax;
      table.pidsMax = pidsMax ?? table.pidsMax;
    },
    get count() {
      return table.living.size;
    },
    get memoryBytes() {
      return table.memoryBytes;
    },
    get memoryPeakBytes() {
      return table.memoryPeakBytes;
    },
    get oomKills() {
      return table.oomKills;
    },
  };
}

function startProcess(
  table: Table,
  name: string,
  tree: Set<SimProcess>,
  body: ProcessBody,
): SimProcess {
  table.lastPid += 1;
  const pid = table.lastPid;
  const life = new AbortController();
  let killedBy: number | undefined;
  const signals = createSignals((number) => {
    killedBy ??= number;
    life.abort(new DsecError('cancelled', `process ${pid} was killed by signal ${killedBy}`));
  });
  const step = async () => {
    await unlessAborted(signals.continued(), life.signal);
    await unlessAborted(table.time.thawed(), life.signal);
    life.signal.throwIfAborted();
  };
  const memory = createMemory(table);
  const system: ProcessSystem = {
    pid,
    killed: life.signal,
    async wait(promise) {
      const value = await unlessAborted(promise, life.signal);
      await step();
      return value as Awaited<typeof promise>;
    },
    async sleep(ms) {
      await table.time.sleep(ms, life.signal);
      await step();
    },
    onSignal: signals.handle,
    async raise(number) {
      signals.deliver(number);
      await step();
    },
    async allocate(bytes) {
      if (!memory.take(bytes)) signals.deliver(SIGKILL);
      await step();
    },
  };
  const run = async (): Promise<ProcessEnd> => {
    try {
      await step();
      const exitCode = await body(system);
      await step();
      return { exitCode: exitCode & 0xff };
    } catch (thrown) {
      if (killedBy !== undefined) return { signal: killedBy };
      // A step that the system refused, as a fork beyond the limit.
      if (thrown instanceof DsecError) return { exitCode: 1 };
      throw thrown;
    } finally {
      memory.free();
      table.living.delete(process);
      tree.delete(process);
    }
  };
  const ended = Promise.resolve().then(run);
  const process: SimProcess = { pid, name, signal: signals.deliver, ended };
  table.living.add(process);
  tree.add(process);
  return process;
}

/** What a process holds. Taking more than the sandbox may have fails, and counts. */
function createMemory(table: Table) {
  let ownBytes = 0;
  const take = (bytes: number): boolean => {
    if (table.memoryBytes + bytes > table.memoryBytesMax) {
      table.oomKills += 1;
      return false;
    }
    ownBytes += bytes;
    table.memoryBytes += bytes;
    table.memoryPeakBytes = Math.max(table.memoryPeakBytes, table.memoryBytes);
    return true;
  };
  take(PROCESS_BYTES);
  return {
    take,
    free() {
      table.memoryBytes -= ownBytes;
    },
  };
}

/** Signals with their default actions of Linux. Those of a stopped process wait until it goes on. */
function createSignals(kill: (number: number) => void) {
  const handlers = new Map<number, (() => void) | undefined>();
  const pending = new Set<number>();
  let stopped: Promise<void> | undefined;
  let resume = () => {};
  const act = (number: number) => {
    if (handlers.has(number) && !ABSOLUTE.has(number)) {
      handlers.get(number)?.();
    } else if (STOPPING.has(number)) {
      stopped ??= new Promise((resolve) => {
        resume = resolve;
      });
    } else if (number !== SIGCONT && !IGNORED_BY_DEFAULT.has(number)) {
      kill(number);
    }
  };
  return {
    handle: (number: number, handler: (() => void) | undefined) =>
      void handlers.set(number, handler),
    /** While it is stopped: resolves when it goes on. */
    continued: () => stopped,
    deliver(number: number): void {
      if (number !== SIGCONT && number !== SIGKILL && stopped !== undefined) {
        pending.add(number);
        return;
      }
      if (number === SIGCONT) {
        stopped = undefined;
        resume();
      }
      const waiting = number === SIGCONT ? [...pending] : [];
      pending.clear();
      for (const each of [number, ...waiting]) act(each);
    },
  };
}
