import { Duplex } from 'node:stream';
import { type Clock, KIB } from '@dsec/std';

/** What may be wrong with a connection. */
export interface PipeFaults {
  /** Nothing that is written arrives any more, and nobody is told: a half-open stream. */
  readonly isHalfOpen?: boolean;
  /** So long passes before each piece is read by the host. */
  readonly readDelayMs?: number;
  /** The connection is lost when the agent has sent so many bytes. */
  readonly cutAfterBytes?: number;
}

export interface BytePipe {
  readonly host: Duplex;
  readonly agent: Duplex;
}

const BUFFER_BYTES = 64 * KIB;

/** A connection in memory, with backpressure. An end that is destroyed breaks the other one, as a socket. */
export function createBytePipe(clock: Clock, faults: PipeFaults = {}): BytePipe {
  const host = createEnd();
  const agent = createEnd();
  connect(host, agent, (bytes) => (faults.isHalfOpen ? undefined : Promise.resolve(bytes)));
  let sent = 0;
  connect(agent, host, async (bytes) => {
    if (faults.isHalfOpen) return new Promise(() => {});
    if (faults.readDelayMs !== undefined) await clock.sleep(faults.readDelayMs);
    sent += bytes.byteLength;
    if (sent > (faults.cutAfterBytes ?? Number.POSITIVE_INFINITY)) agent.duplex.destroy();
    return bytes;
  });
  return { host: host.duplex, agent: agent.duplex };
}

interface End {
  readonly duplex: Duplex;
  /** Where what is written goes; resolves when there is room for more. */
  deliver: (bytes: Uint8Array) => Promise<void>;
  /** Told once when nothing more is written. */
  finish: () => void;
  /** Told when this end is gone. */
  gone: () => void;
  /** The other end's writer, waiting for room. */
  room: (() => void) | undefined;
}

function createEnd(): End {
  const end: End = {
    duplex: new Duplex({
      allowHalfOpen: true,
      highWaterMark: BUFFER_BYTES,
      read: () => {
        const { room } = end;
        end.room = undefined;
        room?.();
      },
      write: (chunk: Uint8Array, _encoding, done) => {
        end.deliver(chunk).then(() => done(), done);
      },
      final: (done) => {
        end.finish();
        done();
      },
      destroy: (error, done) => {
        end.gone();
        done(error);
      },
    }),
    deliver: async () => {},
    finish: () => {},
    gone: () => {},
    room: undefined,
  };
  return end;
}

/** What is written into `from` comes out of `to`, after `pass` has let it through; undefined swallows it. */
function connect(
  from: End,
  to: End,
  pass: (bytes: Uint8Array) => Promise<Uint8Array> | undefined,
): void {
  from.deliver = async (bytes) => {
    const passed = await pass(bytes);
    if (passed === undefined || to.duplex.destroyed) return;
    if (to.duplex.push(passed)) return;
    await new Promise<void>((resolve) => {
      to.room = resolve;
    });
  };
  from.finish = () => {
    if (!to.duplex.destroyed) to.duplex.push(null);
  };
  from.gone = () => {
    const { room } = from;
    from.room = undefined;
    room?.();
    // Not at once: what was written before it still arrives.
    setImmediate(() => {
      if (from.duplex.writableFinished && to.duplex.readableEnded) return;
      if (!to.duplex.destroyed) to.duplex.destroy(lostUnlessEnded(from.duplex));
    });
  };
}

function lostUnlessEnded(duplex: Duplex): Error | undefined {
  if (duplex.writableFinished) return undefined;
  return Object.assign(new Error('connection reset'), { code: 'ECONNRESET' });
}
