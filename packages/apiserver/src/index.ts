export { type Apiserver, type ApiserverOptions, startApiserver } from './apiserver.ts';
export {
  type ApiserverLog,
  createApiserverLog,
  LOG_LEVELS,
  type LogLevel,
} from './apiserver-log.ts';
export { CRASH_POINTS, type CrashPoint } from './crash-point.ts';
export type { EdgeAddress } from './fleet/edge-link.ts';
export type { TicketKey } from './fleet/ticket-signer.ts';
