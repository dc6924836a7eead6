import { asDsecError, DsecError, type ErrorCode, toErrorBody } from '@dsec/std';

export interface Failure {
  readonly error: DsecError;
  /** What the caller gets to know: of a fault of our own nothing but the request id. */
  readonly told: DsecError;
}

/** Fastify's own refusals, by the prefix of their code, in the terms of the error table. */
const FRAMEWORK_CODES: readonly (readonly [prefix: string, code: ErrorCode])[] = [
  ['FST_ERR_CTP_BODY_TOO_LARGE', 'too-large'],
  ['FST_ERR_CTP_', 'invalid-argument'],
  ['FST_ERR_BAD_URL', 'invalid-argument'],
  ['FST_ERR_MAX_PARAM_LENGTH', 'invalid-argument'],
  ['FST_ERR_ROUTE_', 'invalid-argument'],
];

/** Turns whatever a route threw into what the caller is told. */
export function failureOf(thrown: unknown, requestId: string): Failure {
  const error = translate(thrown);
  if (error.code !== 'internal') return { error, told: error };
  const told = new DsecError('internal', 'a fault in DSec', { details: { requestId } });
  return { error, told };
}

function translate(thrown: unknown): DsecError {
  if (thrown instanceof DsecError) return thrown;
  const { code, name, statusCode, message } = thrown as {
    code?: unknown;
    name?: unknown;
    statusCode?: unknown;
    message?: unknown;
  };
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') {
    return new DsecError(
      'invalid-argument',
      'a body here is JSON: send it with the header Content-Type: application/json',
      { cause: thrown, details: { about: 'content-type' } },
    );
  }
  const known = FRAMEWORK_CODES.find(([prefix]) => String(code ?? '').startsWith(prefix));
  if (known !== undefined) {
    return new DsecError(known[1], String(message), { cause: thrown });
  }
  // The JSON parser's refusals carry a status and no code.
  if (name === 'SyntaxError' && statusCode === 400) {
    return new DsecError('invalid-argument', 'the body is not JSON', { cause: thrown });
  }
  return asDsecError(thrown);
}

/** What the HTTP parser refused before there was a request. */
export function parserFailure(fault: Error & { code?: string }): DsecError {
  const code = fault.code ?? '';
  if (code === 'HPE_HEADER_OVERFLOW') {
    return new DsecError('too-large', 'the head of the request is too long', { cause: fault });
  }
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') {
    return new DsecError('deadline-exceeded', 'the request did not arrive in time', {
      cause: fault,
    });
  }
  return new DsecError('invalid-argument', 'the request is not HTTP', { cause: fault });
}

/** An expectation in the head of a request other than that of `100 Continue`, which Node itself meets. */
export function expectationFailure(): DsecError {
  return new DsecError('invalid-argument', 'of the header Expect only 100-continue is understood', {
    details: { field: 'expect' },
  });
}

/** A whole response for a connection on which no request could be read. */
export function rawResponse(error: DsecError): string {
  const body = JSON.stringify(toErrorBody(error));
  return [
    `HTTP/1.1 ${error.status} Error`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(body)}`,
    'connection: close',
    '',
    body,
  ].join('\r\n');
}
