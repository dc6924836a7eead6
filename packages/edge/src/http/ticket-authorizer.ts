import {
  isStreamRoute,
  SANDBOX_HEADER,
  STREAM_HEADER,
  TICKET_HEADER,
  type TicketClaims,
} from '@dsec/protocol';
import {
  assert,
  DsecError,
  type JobId,
  type PrincipalId,
  type ProjectId,
  type SandboxId,
} from '@dsec/std';
import type { Authorizer, RequestFacts, TicketVerifier } from '@dsec/transport';
import { type Caller, gradingRefusal } from '../operation.ts';
import type { SandboxEntry, Sandboxes } from '../sandboxes.ts';

/** Who is let in, and to which sandbox. */
export interface Visitor {
  /** Absent for the few operations that anybody may use. */
  readonly caller: Caller | undefined;
  /** Of an operation on a sandbox: it is listed here and is the caller's project's. */
  readonly entry: SandboxEntry | undefined;
  /** Of a create: the id that the ticket gives to the new sandbox. */
  readonly newId?: SandboxId | undefined;
}

const STREAM_ID = /^[A-Za-z0-9_-]{22}$/;
const NOBODY: Visitor = { caller: undefined, entry: undefined };

/**
 * Lets in who shows a ticket for exactly this request (THREATS F1); every other is `unauthenticated`, in the
 * same words. A sandbox that is not here and one of another project are the same `not-found`: a ticket names
 * the sandbox, but only this edge knows whose it is.
 */
export function createTicketAuthorizer(
  verifier: TicketVerifier,
  sandboxes: Pick<Sandboxes, 'find'>,
): Authorizer<Visitor> {
  return async (facts) => {
    if (facts.route.operationClass === 'none') return NOBODY;
    const isCreate = facts.operation === 'createSandbox';
    const sandbox = isCreate ? newIdOf(facts) : (facts.params.sandboxId as SandboxId | undefined);
    const claims = verifier.verify(ticketOf(facts), {
      sandbox,
      operationClass: facts.route.operationClass,
      method: facts.method,
      target: facts.target,
      bodyDigest: facts.bodyDigest,
      streamId: streamIdOf(facts),
    });
    const caller = callerOf(claims);
    if (isCreate) return { caller, entry: undefined, newId: sandbox };
    if (sandbox === undefined) return { caller, entry: undefined };
    const entry = sandboxes.find(sandbox);
    if (entry?.project !== caller.project) {
      throw new DsecError('not-found', 'there is no such sandbox');
    }
    checkGrading(entry, caller, facts);
    return { caller, entry };
  };
}

/** What happens in a sandbox that grades is for graders alone; that it is there, and its end, for all. */
function checkGrading(
  entry: SandboxEntry,
  { mayGrade }: Caller,
  { route: { operationClass } }: RequestFacts,
): void {
  const isOutside = operationClass === 'sandboxes:read' || operationClass === 'sandboxes:write';
  if (entry.spec.grading !== true || mayGrade === true || isOutside) return;
  throw gradingRefusal('this sandbox grades: its inside is for keys with the scope grading');
}

export function callerOfVisitor({ caller }: Visitor): Caller {
  assert(caller !== undefined, 'only an operation with a class has a caller');
  return caller;
}

export function entryOfVisitor({ entry }: Visitor): SandboxEntry {
  assert(entry !== undefined, 'an operation on a sandbox has one');
  return entry;
}

function callerOf({ project, principal, job, mayGrade }: TicketClaims): Caller {
  return {
    project: project as ProjectId,
    principal: principal as PrincipalId,
    job: job as JobId | undefined,
    mayGrade: mayGrade ?? false,
  };
}

/** Of no form: fits no ticket. */
function newIdOf({ headers }: RequestFacts): SandboxId | undefined {
  return headers[SANDBOX_HEADER] as SandboxId | undefined;
}

/** An absent or repeated header is as good as a wrong ticket. */
function ticketOf({ headers }: RequestFacts): string {
  const header = headers[TICKET_HEADER];
  return typeof header === 'string' ? header : '';
}

/**
 * A stream has no digest, so that its ticket is bound to an id. What is none fits no ticket; neither does an
 * id where there is no stream.
 */
function streamIdOf({ headers, route }: RequestFacts): string | undefined {
  const header = headers[STREAM_HEADER];
  if (header === undefined && !isStreamRoute(route)) return undefined;
  return typeof header === 'string' && STREAM_ID.test(header) ? header : '';
}
