import { ROUTES } from '@dsec/protocol';
import { MIB } from '@dsec/std';
import type { ExecPlace } from './output.ts';
import type { CallSettings, Server } from './server.ts';

/** Standard input of a command. What is written goes in the order of the calls, each byte once. */
export interface Stdin {
  write(data: Uint8Array, settings?: CallSettings): Promise<void>;
  /** No more comes. */
  end(settings?: CallSettings): Promise<void>;
}

/** Sent at once, and again when the answer was lost. */
const PIECE_BYTES = 4 * MIB;
const EMPTY = new Uint8Array(0);

/** `offset` absent: it is not known what has been written before, and the server is asked. */
export function createStdin(server: Server, params: ExecPlace, offset?: number): Stdin {
  let at = offset;
  let last: Promise<unknown> = Promise.resolve();

  const send = async (body: Uint8Array, end: boolean, settings?: CallSettings) => {
    // A write of nothing at the beginning changes nothing, and is answered with what was taken.
    at ??= (await post(0, EMPTY, false, settings)).offset;
    await post(at, body, end, settings);
    at += body.byteLength;
  };
  const post = (from: number, body: Uint8Array, end: boolean, settings?: CallSettings) =>
    server.call(
      ROUTES.writeExecStdin,
      { params, query: end ? { offset: from, end } : { offset: from }, body },
      settings,
    );
  const inOrder = (work: () => Promise<void>): Promise<void> => {
    const done = last.then(work);
    last = done.catch(() => {});
    return done;
  };
  return {
    write: (data, settings) =>
      inOrder(async () => {
        for (let from = 0; from < data.byteLength; from += PIECE_BYTES) {
          await send(data.subarray(from, from + PIECE_BYTES), false, settings);
        }
      }),
    end: (settings) => inOrder(() => send(EMPTY, true, settings)),
  };
}
