/** The caller need not wait any more once its signal is aborted; the work goes on. */
export function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
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
