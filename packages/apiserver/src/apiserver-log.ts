import type { AnsweredRequest } from '@dsec/transport';
import { type Logger, pino } from 'pino';
import type { Visitor } from './http/key-authorizer.ts';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];
export type ApiserverLog = Pick<Logger, 'debug' | 'info' | 'warn' | 'error'>;

/** Of lines that could not be written yet; further ones are dropped. */
const WAITING_BYTES_MAX = 256 * 1024;

/**
 * Lines of JSON on standard error, written before the call returns, so that a crash loses none. Where they
 * cannot be written, as on a full disk, they are kept for a while and then lost: never a reason to end.
 */
export function createApiserverLog(level: LogLevel, fd = 2): Logger {
  const file = pino.destination({ fd, sync: true, maxLength: WAITING_BYTES_MAX });
  file.on('error', () => undefined);
  return pino(
    { level, base: { part: 'apiserver' }, timestamp: pino.stdTimeFunctions.isoTime },
    file,
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
