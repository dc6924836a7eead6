import { DsecError } from '@dsec/std';
import { type Call, type Exchange, joinConnections, openUpgrade } from '@dsec/transport';
import { attempts } from '../fleet/attempts.ts';
import { asSeenByCaller, type EdgeLink } from '../fleet/edge-link.ts';
import type { Visitor } from '../http/key-authorizer.ts';
import { type ForwardParts, headersFor } from './edge-headers.ts';

/** What makes a request a WebSocket, as the caller has sent it; extensions are the edge's to refuse. */
const HANDSHAKE = ['sec-websocket-key', 'sec-websocket-version'] as const;

/** A WebSocket: the edge's handshake answers the caller's, and then bytes go through as they are. */
export async function forwardSocket(
  link: EdgeLink,
  call: Call<Visitor>,
  exchange: Exchange,
  { clock, random }: ForwardParts,
): Promise<void> {
  const { target, signal } = call;
  const handshake = handshakeOf(exchange);
  const opened = await attempts(
    async () => {
      const headers = { ...headersFor(link, call), ...handshake };
      try {
        return await openUpgrade(link.address, { target, headers, signal });
      } catch (thrown) {
        throw asSeenByCaller(thrown as DsecError);
      }
    },
    { clock, random, signal, mayRepeat: true },
  );
  const onEnd = () => opened.socket.destroy();
  signal.addEventListener('abort', onEnd, { once: true });
  try {
    const { socket, head } = exchange.take();
    socket.write(opened.answer);
    if (opened.head.length > 0) socket.write(opened.head);
    if (head.length > 0) opened.socket.write(head);
    await joinConnections(socket, opened.socket);
  } finally {
    signal.removeEventListener('abort', onEnd);
    opened.socket.destroy();
  }
}

function handshakeOf({ request }: Exchange): Record<string, string> {
  if (request.headers.upgrade?.toLowerCase() !== 'websocket') {
    throw new DsecError('invalid-argument', 'this operation is a WebSocket');
  }
  const headers: Record<string, string> = { connection: 'Upgrade', upgrade: 'websocket' };
  for (const name of HANDSHAKE) {
    const value = request.headers[name];
    if (typeof value === 'string') headers[name] = value;
  }
  return headers;
}
