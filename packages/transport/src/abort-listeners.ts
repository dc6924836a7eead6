/** What is to happen when a signal aborts, of any number of calls that share it, by one listener. */
interface Shared {
  readonly acts: Set<() => void>;
  readonly listener: () => void;
}

const shared = new WeakMap<AbortSignal, Shared>();

/**
 * Calls `act` once when the signal aborts, unless the returned function was called before. A caller may well
 * make a hundred calls with one signal, which Node takes for a leak of listeners.
 */
export function onAborted(signal: AbortSignal, act: () => void): () => void {
  const { acts, listener } = shared.get(signal) ?? share(signal);
  if (acts.size === 0) signal.addEventListener('abort', listener, { once: true });
  acts.add(act);
  return () => {
    // A listener that stays keeps some signals from being collected.
    if (acts.delete(act) && acts.size === 0) signal.removeEventListener('abort', listener);
  };
}

function share(signal: AbortSignal): Shared {
  const acts = new Set<() => void>();
  const listener = () => {
    const due = [...acts];
    acts.clear();
    for (const act of due) act();
  };
  const made = { acts, listener };
  shared.set(signal, made);
  return made;
}
