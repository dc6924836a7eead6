import { randomUUID } from 'node:crypto';
import { ROUTES } from '@dsec/protocol';
import { fromErrorBody, HOUR_MS, SECOND_MS } from '@dsec/std';
import { type CreateManyOptions, sandboxSpecOf } from './create-options.ts';
import { clientErrorOf, type DsecError, ProtocolError, UnavailableError } from './errors.ts';
import { createPatience } from './patience.ts';
import { Sandbox } from './sandbox.ts';
import type { Server } from './server.ts';

/** One of a batch that could not be made. */
export class SandboxFailure {
  /** Its place in the batch, from 0. */
  readonly index: number;
  readonly error: DsecError;

  constructor(index: number, error: DsecError) {
    this.index = index;
    this.error = error;
  }
}

/**
 * Sandboxes of a batch as they become ready. A connection that is lost is made anew with the same key, which
 * goes on with the same batch.
 */
export async function* createBatch(
  server: Server,
  count: number,
  options: CreateManyOptions,
): AsyncGenerator<Sandbox | SandboxFailure> {
  const { idempotencyKey = randomUUID(), timeout, signal, raiseOnFailure = false } = options;
  const body = { count, spec: sandboxSpecOf(options) };
  const timeoutMs = timeout === undefined ? HOUR_MS : timeout * SECOND_MS;
  const patience = createPatience(server.timeoutMs);
  const seen = new Set<number>();
  while (seen.size < count) {
    try {
      const settings = { signal, idempotencyKey, timeoutMs };
      const items = await server.call(ROUTES.createSandboxes, { body }, settings);
      patience.opened();
      for await (const { index, sandbox, error } of items) {
        if (seen.has(index)) continue;
        seen.add(index);
        const result =
          sandbox === undefined ? failureOf(index, error) : new Sandbox(server, sandbox);
        if (raiseOnFailure && result instanceof SandboxFailure) throw new Raised(result.error);
        yield result;
        patience.progressed();
      }
      if (seen.size < count) throw new UnavailableError('unavailable', 'the batch broke off');
    } catch (thrown) {
      if (thrown instanceof Raised) throw thrown.error;
      await patience.pause(clientErrorOf(thrown), signal);
    }
  }
}

/** Carries an error of the batch past what is done about those of the connection. */
class Raised {
  readonly error: DsecError;

  constructor(error: DsecError) {
    this.error = error;
  }
}

function failureOf(index: number, error: Parameters<typeof fromErrorBody>[0] | undefined) {
  if (error === undefined) throw new ProtocolError('protocol', 'a batch told nothing of one');
  return new SandboxFailure(index, clientErrorOf(fromErrorBody(error)));
}
