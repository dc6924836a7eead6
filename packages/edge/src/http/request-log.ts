import type { AnsweredRequest } from '@dsec/transport';
import type { Logger } from 'pino';
import type { Visitor } from './ticket-authorizer.ts';

export type RequestLog = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>;

/**
 * A line for each request: who did what to which sandbox, and how it ended. Never a header, a query, a body
 * or the text of an error, because these hold tickets, paths, commands and what sandboxes say.
 */
export function logRequest(
  log: RequestLog,
  { operation, requestId, status, error, durationMs, call }: AnsweredRequest<Visitor>,
): void {
  const { caller, entry } = call?.principal ?? {};
  const line = {
    operation,
    status,
    code: error?.code,
    durationMs: Math.round(durationMs * 1000) / 1000,
    requestId,
    traceId: call?.traceparent.split('-')[1],
    sandbox: entry?.id,
    project: caller?.project,
    principal: caller?.principal,
  };
  if (status >= 500) log.warn(line, 'answered');
  else if (status >= 400 || call?.route.effect !== 'read') log.info(line, 'answered');
  else log.debug(line, 'answered');
}
