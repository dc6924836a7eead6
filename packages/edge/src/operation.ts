import { type Digest, DsecError, type JobId, type PrincipalId, type ProjectId } from '@dsec/std';

/** Who asks, as the ticket says. */
export interface Caller {
  readonly project: ProjectId;
  readonly principal: PrincipalId;
  readonly job?: JobId | undefined;
  /** It may make and reach sandboxes that grade. */
  readonly mayGrade?: boolean | undefined;
}

/** What comes with every request to a service of the edge. */
export interface OperationContext {
  readonly caller: Caller;
  /**
   * Aborts when the caller is gone or its time is up. Work that others can see goes on: the journal
   * decides.
   */
  readonly signal: AbortSignal;
  /** W3C trace context of the caller, or the beginning of a new trace. */
  readonly traceparent: string;
}

/** Of a request to a keyed route. */
export interface KeyedContext extends OperationContext {
  /** Absent: the caller takes the risk of a repetition. */
  readonly idempotencyKey?: string | undefined;
  /** Of the request's body: the same key with another one is `idempotency-conflict`. */
  readonly requestDigest: Digest;
}

/** The 25 bytes by which the agent's frames carry a trace context: trace id, parent id, flags. */
export function traceBytes(traceparent: string): Uint8Array {
  return Buffer.from(traceparent.slice('00-'.length).replaceAll('-', ''), 'hex');
}

export function gradingRefusal(message: string): DsecError {
  return new DsecError('permission-denied', message, { details: { scope: 'grading' } });
}
