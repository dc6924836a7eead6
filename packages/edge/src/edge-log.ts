import type { EdgeId } from '@dsec/std';
import { type Logger, pino } from 'pino';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Of lines that could not be written yet; further ones are dropped. */
const WAITING_BYTES_MAX = 256 * 1024;

/**
 * Lines of JSON on standard error, written before the call returns, so that a crash loses none. Where they
 * cannot be written, as on a full disk, they are kept for a while and then lost: never a reason to end.
 */
export function createEdgeLog(edge: EdgeId, level: LogLevel, fd = 2): Logger {
  const file = pino.destination({ fd, sync: true, maxLength: WAITING_BYTES_MAX });
  file.on('error', () => undefined);
  return pino({ level, base: { edge }, timestamp: pino.stdTimeFunctions.isoTime }, file);
}
