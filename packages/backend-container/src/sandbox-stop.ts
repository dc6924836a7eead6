import type { SandboxKey } from '@dsec/backend';
import { asDsecError, DsecError, orAborted, SECOND_MS } from '@dsec/std';
import { startDeadline } from '@dsec/transport';
import type { ObjectKey } from './launcher-client.ts';
import {
  type BackendContext,
  forget,
  type Life,
  objectKey,
  releaseLayers,
} from './sandbox-life.ts';
import { objectId } from './spawn-spec.ts';

/** One for all: each of its own would cost a stack trace. */
const STOPPING = new DsecError('cancelled', 'the sandbox is being stopped');

const STOP_TIMEOUT_MS = 30 * SECOND_MS;
const RETRY_MS = 50;

/** See `Backend.stop`. */
export function stopSandbox(
  context: BackendContext,
  key: SandboxKey,
  signal?: AbortSignal,
): Promise<void> {
  const life = context.lives.get(objectId(key));
  if (life === undefined) return destroyObject(context, objectKey(key), signal);
  // Whoever gives up waiting does not undo what others asked for.
  life.stopping ??= stopLife(context, life).finally(() => {
    life.stopping = undefined;
  });
  return orAborted(life.stopping, signal).catch((thrown: unknown) => {
    throw asDsecError(thrown);
  });
}

async function stopLife(context: BackendContext, life: Life): Promise<void> {
  if (life.state === 'creating') life.giveUp.abort(STOPPING);
  await life.created;
  // A creation that failed has undone itself, unless it says so.
  if (context.lives.get(objectId(life.key)) !== life) return;
  await destroyObject(context, objectKey(life.key));
  releaseLayers(context, life);
  forget(context, life);
}

/**
 * Kills and removes whatever bears a name, known to the launcher or not. Asks again when the launcher
 * went away meanwhile; `deadline-exceeded` with the last reason.
 */
export async function destroyObject(
  context: BackendContext,
  key: ObjectKey,
  signal?: AbortSignal,
  timeoutMs: number = STOP_TIMEOUT_MS,
): Promise<void> {
  const limit = startDeadline(timeoutMs, signal);
  try {
    for (;;) {
      const error = await destroyOnce(context, key, limit.signal);
      if (error === undefined) return;
      signal?.throwIfAborted();
      if (limit.signal.aborted) {
        const name = `${key.name}-${key.generation}`;
        throw new DsecError('deadline-exceeded', `${name} does not end: ${error.message}`, {
          cause: error,
        });
      }
      if (!RETRIED.has(error.code)) throw error;
      await context.clock.sleep(RETRY_MS, limit.signal).catch(() => {});
    }
  } finally {
    limit.stop();
  }
}

/** Resolves with what went wrong. */
async function destroyOnce(
  context: BackendContext,
  key: ObjectKey,
  signal: AbortSignal,
): Promise<DsecError | undefined> {
  try {
    const client = await context.link.client(signal);
    // Sent together: the launcher releases it as soon as it has ended.
    await Promise.all([client.kill(key, signal), client.release(key, signal)]);
    return undefined;
  } catch (thrown) {
    return asDsecError(thrown);
  }
}

/** `state-conflict`: it runs again in the eyes of the launcher, that had not seen its end. */
const RETRIED: ReadonlySet<string> = new Set(['unavailable', 'overloaded', 'state-conflict']);
