import type { IncomingMessage, ServerResponse } from 'node:http';
import { DsecError } from '@dsec/std';
import { hasBody } from './http-guard.ts';
import type { HttpServerLimits } from './http-limits.ts';

/**
 * Cuts off a peer that does not send the body it announced, or does not take the answer. Silence
 * while we are the ones who work or wait is no fault of the peer's.
 */
export function watchStalls(
  request: IncomingMessage,
  response: ServerResponse,
  limits: HttpServerLimits,
  isStream: boolean,
): void {
  const { socket } = request;
  response.on('timeout', () => {
    const doesNotSend = hasBody(request) && !request.complete && request.readableLength === 0;
    const doesNotTake = response.writableLength > 0;
    if (doesNotSend || doesNotTake) socket.destroy();
    else socket.setTimeout(limits.stallTimeoutMs);
  });
  if (isStream || !hasBody(request)) return;
  const timer = setTimeout(() => {
    const late = new DsecError('deadline-exceeded', 'the body did not arrive in time');
    // Told to whoever reads the body, so that the caller gets an answer; nobody does once there is one.
    if (request.listenerCount('error') > 0 && !response.headersSent) request.emit('error', late);
    else request.destroy(late);
  }, limits.bodyTimeoutMs);
  for (const event of ['end', 'close']) request.once(event, () => clearTimeout(timer));
}

/**
 * After an answer that came before the body's end: reads on for a while, so that the peer can read
 * the answer.
 */
export function lingerAfter(request: IncomingMessage, lingerMs: number): void {
  if (request.complete || request.socket.destroyed) return;
  request.resume();
  const timer = setTimeout(() => request.socket.destroy(), lingerMs);
  for (const event of ['end', 'close']) request.once(event, () => clearTimeout(timer));
}
