import type { EdgeId } from '@dsec/std';
import { type Logger, pino } from 'pino';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Lines of JSON on standard error, written before the call returns, so that a crash loses none. */
export function createEdgeLog(edge: EdgeId, level: LogLevel): Logger {
  return pino(
    { level, base: { edge }, timestamp: pino.stdTimeFunctions.isoTime },
    pino.destination({ fd: 2, sync: true }),
  );
}
