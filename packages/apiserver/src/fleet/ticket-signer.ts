import type { KeyObject } from 'node:crypto';
import {
  type OperationClass,
  STREAM_HEADER,
  TICKET_HEADER,
  type TicketClaims,
} from '@dsec/protocol';
import type { Clock } from '@dsec/std';
import { newStreamId, newTicketClaims, signTicket, type TicketRequest } from '@dsec/transport';

export interface TicketKey {
  readonly id: string;
  /** Ed25519. */
  readonly privateKey: KeyObject;
}

/** For whom a ticket speaks. */
export interface TicketHolder extends Pick<TicketClaims, 'project' | 'principal'> {
  /** Of its key. */
  readonly scopes?: readonly OperationClass[];
}

/** The headers by which an edge believes one request, once. */
export type TicketSigner = (
  request: Omit<TicketRequest, 'streamId'> & { readonly isStream: boolean },
  holder: TicketHolder,
) => Readonly<Record<string, string>>;

export function createTicketSigner(
  edge: TicketClaims['edge'],
  key: TicketKey,
  clock: Clock,
): TicketSigner {
  return ({ isStream, bodyDigest, ...request }, { project, principal, scopes }) => {
    const streamId = isStream ? newStreamId() : undefined;
    const bound = streamId === undefined ? { bodyDigest } : { streamId };
    const grades = scopes?.includes('grading') ? { mayGrade: true } : {};
    const holder = { edge, project, principal, ...grades };
    const claims = newTicketClaims({ ...request, ...bound }, holder, undefined, clock);
    return {
      [TICKET_HEADER]: signTicket(claims, key.privateKey, key.id),
      ...(streamId === undefined ? {} : { [STREAM_HEADER]: streamId }),
    };
  };
}
