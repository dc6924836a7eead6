import { closeSync, openSync } from 'node:fs';
import { syscall } from './syscall.ts';

const CLONE_NEWNET = 0x4000_0000;

/**
 * Runs `work` with this thread inside another network namespace, given by descriptor, and goes back. The
 * one way that Node may change a namespace: `work` must not wait for anything, since whatever the event
 * loop or its pool of threads does meanwhile would see either. Sockets and links made inside stay where
 * they were made. Needs root in both namespaces. A thread that cannot go back ends the process: what it
 * would do from then on would be done in the wrong place.
 */
export function inNetworkNamespace<Result>(namespaceFd: number, work: () => Result): Result {
  const own = openSync('/proc/thread-self/ns/net', 'r');
  try {
    syscall('setns', [namespaceFd, CLONE_NEWNET], 'network namespace');
    try {
      return work();
    } finally {
      goBack(own);
    }
  } finally {
    closeSync(own);
  }
}

function goBack(namespaceFd: number): void {
  try {
    syscall('setns', [namespaceFd, CLONE_NEWNET], 'own network namespace');
  } catch {
    process.abort();
  }
}
