import type { AnsweredRequest } from '@dsec/transport';
import { type Logger, pino } from 'pino';
import type { Visitor } from './http/key-authorizer.ts';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type ApiserverLog = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>;

/** Lines of JSON on standard error, written before the call returns, so that a crash loses none. */
export function createApiserverLog(level: LogLevel): Logger {
  return pino(
    { level, base: { part: 'apiserver' }, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ fd: 2, sync: true }),
  );
}

/**
 * A line for each request: who did what to which sandbox, and how it ended. Never a header, a query, a body
 * or the text of an error, because these hold keys, paths, commands and what sandboxes say.
 */
export function logRequest(
  log: ApiserverLog,
  { operation, requestId, status, error, durationMs, call }: AnsweredRequest<Visitor>,
): void {
  const identity = call?.principal.identity;
  const line = {
    operation,
    status,
    code: error?.code,
    durationMs: Math.round(durationMs * 1000) / 1000,
    requestId,
    traceId: call?.traceparent.split('-')[1],
    sandbox: call?.params.sandboxId,
    project: identity?.project,
    principal: identity?.principal,
    key: identity?.keyId,
  };
  if (status >= 500) log.warn(line, 'answered');
  else if (status >= 400 || call?.route.effect !== 'read') log.info(line, 'answered');
  else log.debug(line, 'answered');
}
