import type { Socket } from 'node:net';
import { DsecError } from '@dsec/std';
import { type ClientHello, isTlsStart, parseClientHello } from './client-hello.ts';
import type { EgressLimits } from './limits.ts';

/** How a connection begins: the name that TLS is for, or anything else, which may be HTTP. */
export interface ConnectionStart {
  readonly hello: ClientHello | undefined;
  readonly bytes: Buffer;
}

/** Reads the first bytes of a connection until its kind is known. Rejects as `readUntil`. */
export async function readStart(socket: Socket, limits: EgressLimits): Promise<ConnectionStart> {
  const { found, bytes } = await readUntil(socket, limits, (all) => {
    if (!isTlsStart(all)) return { hello: undefined };
    const hello = parseClientHello(all);
    return hello && { hello };
  });
  return { ...found, bytes };
}

/**
 * Takes bytes from a socket until `parse` finds something in all of them. The socket is paused then. Rejects
 * with what `parse` throws, `protocol` (too many pieces), `deadline-exceeded` or `cancelled` (it ended).
 */
export async function readUntil<T>(
  socket: Socket,
  limits: EgressLimits,
  parse: (bytes: Buffer) => T | undefined,
): Promise<{ found: T; bytes: Buffer }> {
  let bytes: Buffer = Buffer.alloc(0);
  const deadline = AbortSignal.timeout(limits.startTimeoutMs);
  for (let pieces = 0; pieces < limits.startPiecesMax; ) {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) {
      await readable(socket, deadline);
      continue;
    }
    pieces += 1;
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
    const found = parse(bytes);
    if (found !== undefined) return { found, bytes };
  }
  throw new DsecError('protocol', 'TLS: a message in too many pieces');
}

function readable(socket: Socket, deadline: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const ended = () => settle(() => reject(new DsecError('cancelled', 'the connection ended')));
    const late = () => settle(() => reject(new DsecError('deadline-exceeded', 'nothing came')));
    const ready = () => settle(resolve);
    const settle = (then: () => void) => {
      socket.off('readable', ready);
      socket.off('end', ended);
      socket.off('close', ended);
      deadline.removeEventListener('abort', late);
      then();
    };
    if (socket.destroyed || socket.readableEnded) return ended();
    if (deadline.aborted) return late();
    socket.on('readable', ready);
    socket.on('end', ended);
    socket.on('close', ended);
    deadline.addEventListener('abort', late, { once: true });
    socket.read(0);
  });
}
