import type { Duplex } from 'node:stream';
import { type AgentFields, type AgentStream, openRaw } from '@dsec/backend';
import { NONCE_BYTES } from '@dsec/protocol';
import { KIB } from '@dsec/std';
import type { FileAgent } from './file-agent.ts';
import type { TransferGuard } from './transfer-guard.ts';

/** From so many bytes on, a connection of their own is worth its making. */
export const RAW_BYTES_MIN = 256 * KIB;

/** A request whose bytes have a connection of their own; how it ends, its stream says (THREATS A7). */
export interface RawTransfer {
  readonly stream: AgentStream;
  readonly raw: Duplex;
}

/** `undefined` where the bytes have to go in frames: this sandbox takes no second connection. */
export async function beginRawTransfer<T extends 'file-read' | 'file-write'>(
  { link, dial, random }: FileAgent,
  type: T,
  fields: Omit<AgentFields<T>, 'rawToken'>,
  guard: TransferGuard,
): Promise<RawTransfer | undefined> {
  const rawToken = random.bytes(NONCE_BYTES);
  const stream = link.open();
  try {
    await guard.step(stream.send(type, { ...fields, rawToken } as unknown as AgentFields<T>));
    const opening = openRaw(dial, rawToken, guard.signal);
    const raw = await guard.step(opening).catch((thrown) => {
      // It may still come, when nobody waits for it any more.
      opening.then(
        (late) => late.destroy(),
        () => {},
      );
      throw thrown;
    });
    // Its loss is seen as its end.
    raw.on('error', () => {});
    return { stream, raw };
  } catch (thrown) {
    stream.leave({ cancel: true });
    if (guard.signal.aborted) throw thrown;
    return undefined;
  }
}
