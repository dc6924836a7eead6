import { DsecError, ERROR_CODES, type ErrorCode } from '@dsec/std';

/**
 * WebSocket close codes and the error table. Where RFC 6455 has a code it is used; every other
 * error is 4000 plus its exit code, which is as unique as the error.
 */

export const CLOSE_NORMAL = 1000;
const PRIVATE_BASE = 4000;
const REASON_BYTES_MAX = 123;

const STANDARD: ReadonlyMap<number, ErrorCode> = new Map([
  [1001, 'unavailable'],
  [1002, 'protocol'],
  [1009, 'too-large'],
  [1011, 'internal'],
]);
/** Codes that others use for what has a code of its own here, and the two that stand for "no close frame". */
const UNDERSTOOD: ReadonlyMap<number, ErrorCode> = new Map([
  ...STANDARD,
  [1003, 'invalid-argument'],
  [1005, 'unavailable'],
  [1006, 'unavailable'],
  [1007, 'protocol'],
  [1008, 'permission-denied'],
  [1012, 'unavailable'],
  [1013, 'overloaded'],
]);

export function closeCodeOf(error: DsecError): number {
  for (const [closeCode, code] of STANDARD) if (code === error.code) return closeCode;
  return PRIVATE_BASE + error.exitCode;
}

/** The message, cut to what a close frame holds. */
export function closeReasonOf(error: DsecError): string {
  let reason = error.message;
  while (Buffer.byteLength(reason) > REASON_BYTES_MAX) reason = reason.slice(0, -1);
  return reason;
}

/** What a close code of the peer means; `undefined` for a normal end. */
export function errorOfClose(closeCode: number, reason: string): DsecError | undefined {
  if (closeCode === CLOSE_NORMAL) return undefined;
  const message = reason === '' ? `the WebSocket was closed with ${closeCode}` : reason;
  const known = UNDERSTOOD.get(closeCode) ?? codeOfExit(closeCode - PRIVATE_BASE);
  return new DsecError(known ?? 'protocol', message, { details: { closeCode } });
}

function codeOfExit(exitCode: number): ErrorCode | undefined {
  const codes = Object.keys(ERROR_CODES) as ErrorCode[];
  return codes.find((code) => ERROR_CODES[code].exitCode === exitCode);
}
