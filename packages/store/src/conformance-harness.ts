import assert from 'node:assert/strict';
import { DsecError, type ErrorCode } from '@dsec/std';
import type { KeyChange, Store } from './store.ts';

export interface StoreHarness {
  readonly store: Store;
  /** Deletions that the store under test remembers for watchers, some slack included. Small, 64 at most. */
  readonly tombstonesMax: number;
  /** Waiters that it admits. Small, 64 at most. */
  readonly waitersMax: number;
  /** Lets everything under way come to rest, then this much time pass on the store's clock. */
  advance(ms: number): Promise<void>;
}

export interface ConformanceCase {
  readonly name: string;
  run(harness: StoreHarness): Promise<void>;
}

export const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

export const text = (value: Uint8Array | undefined): string | undefined =>
  value === undefined ? undefined : new TextDecoder().decode(value);

/** Expects a refusal with this code and returns it. */
export async function refused(code: ErrorCode, work: () => Promise<unknown>): Promise<DsecError> {
  try {
    await work();
  } catch (thrown) {
    assert.ok(thrown instanceof DsecError, `expected a DsecError, got ${String(thrown)}`);
    assert.equal(thrown.code, code);
    return thrown;
  }
  assert.fail(`expected a refusal with ${code}`);
}

/** A watch as a test reads it: the next so many changes, each written as one short text. */
export function openWatch(store: Store, prefix: string, afterRevision: number) {
  const abort = new AbortController();
  const changes = store.keys.watch(prefix, { afterRevision, signal: abort.signal });
  const iterator = changes[Symbol.asyncIterator]();
  return {
    async take(count: number): Promise<readonly string[]> {
      const taken: string[] = [];
      while (taken.length < count) {
        const { value, done } = await iterator.next();
        if (done === true) return [...taken, 'end'];
        taken.push(describeChange(value));
      }
      return taken;
    },
    next: () => iterator.next(),
    async stop() {
      abort.abort();
      await iterator.return?.();
    },
    abort: () => abort.abort(),
  };
}

function describeChange(change: KeyChange): string {
  if (change.type === 'put') return `put ${change.key} ${text(change.value)}`;
  return change.type === 'gone' ? `${change.reason} ${change.key}` : 'resync';
}
