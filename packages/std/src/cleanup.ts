import { asDsecError, type DsecError } from './errors.ts';

export interface CleanupStack {
  /** Remembers how to undo the step that has just been done. After `run` it undoes at once. */
  push(name: string, undo: () => void | Promise<void>): void;
  /** Forgets every undo: the work as a whole has succeeded and now belongs to somebody else. */
  release(): void;
  /** Undoes in reverse order, once; goes on after a failure. Returns every error with its step's name. */
  run(): Promise<readonly CleanupFailure[]>;
}

export interface CleanupFailure {
  readonly step: string;
  readonly error: DsecError;
}

/** Steps that are undone in reverse when a later one fails (cf. nomad's task hooks). */
export function createCleanupStack(): CleanupStack {
  let steps: { name: string; undo: () => void | Promise<void> }[] = [];
  let running: Promise<readonly CleanupFailure[]> | undefined;

  const undoAll = async () => {
    const failures: CleanupFailure[] = [];
    for (let step = steps.pop(); step !== undefined; step = steps.pop()) {
      try {
        await step.undo();
      } catch (thrown) {
        failures.push({ step: step.name, error: asDsecError(thrown) });
      }
    }
    return failures;
  };

  return {
    push(name, undo) {
      steps.push({ name, undo });
      if (running !== undefined) {
        running = running.then(async (before) => [...before, ...(await undoAll())]);
      }
    },
    release() {
      steps = [];
    },
    run() {
      running ??= undoAll();
      return running;
    },
  };
}
