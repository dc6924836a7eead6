/** Work that goes on beside, so much of it at a time. The first failure is told to whoever adds or waits. */
export interface Pool {
  /** Resolves when there is room, and the work has begun. */
  add(work: () => Promise<void>): Promise<void>;
  /** Resolves when all of it is done. */
  finish(): Promise<void>;
  /** The same, whatever became of it. */
  settle(): Promise<void>;
}

export function createPool(sizeMax: number): Pool {
  const running = new Set<Promise<void>>();
  let failure: { readonly thrown: unknown } | undefined;
  const check = () => {
    if (failure !== undefined) throw failure.thrown;
  };
  const settle = async () => {
    while (running.size > 0) await Promise.race(running);
  };
  return {
    settle,
    async add(work) {
      while (running.size >= sizeMax) await Promise.race(running);
      check();
      const done = work()
        .catch((thrown: unknown) => {
          failure ??= { thrown };
        })
        .finally(() => running.delete(done));
      running.add(done);
    },
    async finish() {
      await settle();
      check();
    },
  };
}
