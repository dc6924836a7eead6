/** The outcome of work that goes on by itself, or the reason why its watcher no longer cares. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    const over = () => signal.removeEventListener('abort', onAbort);
    work.then(
      (result) => {
        over();
        resolve(result);
      },
      (thrown) => {
        over();
        reject(thrown);
      },
    );
  });
}
