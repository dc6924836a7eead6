import { Duplex, PassThrough } from 'node:stream';
import type { StreamFrame } from '@dsec/backend';
import { DsecError, systemRandom } from '@dsec/std';
import type { FileAgent } from '../../src/files/file-agent.ts';

export interface Script {
  /** What comes on the stream of the request, in order; then nothing more comes. */
  readonly frames?: readonly (StreamFrame | Error)[];
  /** What comes when the input has ended. */
  readonly atEnd?: StreamFrame;
  /** What comes on the raw stream; absent: there is none. */
  readonly raw?: readonly Uint8Array[];
  /** The raw stream takes no bytes beyond the token. */
  readonly isStuck?: boolean;
}

/** An agent that says what a test wants, whatever it is asked. */
export function scriptedAgent(script: Script) {
  const frames = [...(script.frames ?? [])];
  const sent: string[] = [];
  let wake = () => {};
  const written: Uint8Array[] = [];
  const closed: DsecError[] = [];
  let left: { cancel: boolean } | undefined;
  const raws: Duplex[] = [];
  const stream = {
    number: 1,
    get inputOffset() {
      return written.reduce((sum, data) => sum + data.byteLength, 0);
    },
    async send(type: string) {
      sent.push(type);
    },
    async receive(signal?: AbortSignal): Promise<StreamFrame> {
      while (frames.length === 0) {
        if (signal?.aborted) throw signal.reason;
        await new Promise<void>((resolve) => {
          wake = resolve;
          signal?.addEventListener('abort', () => resolve(), { once: true });
        });
      }
      const frame = frames.shift() as StreamFrame | Error;
      if (frame instanceof Error) throw frame;
      return frame;
    },
    async write(data: Uint8Array) {
      written.push(data);
    },
    async endInput(offset?: number) {
      sent.push(offset === undefined ? 'end' : `end at ${offset}`);
      if (script.atEnd !== undefined) frames.push(script.atEnd);
      wake();
    },
    leave(how?: { cancel: boolean }) {
      left = how ?? { cancel: false };
    },
  };
  const agent = {
    link: { open: () => stream, close: (error: DsecError) => closed.push(error) },
    async dial() {
      if (script.raw === undefined) throw new DsecError('unavailable', 'no raw streams');
      const raw = rawStream(script.raw, script.isStuck === true);
      raws.push(raw);
      return raw;
    },
    random: systemRandom,
    onUse() {},
  } as unknown as FileAgent;
  return { agent, sent, written, closed, raws, left: () => left };
}

export const stdout = (offset: number, bytes: number) =>
  ({ type: 'stdout', stream: 1, epoch: 1, offset, data: Buffer.alloc(bytes), end: false }) as const;
export const done = (bytes?: number) =>
  ({
    ...{ type: 'done', stream: 1, epoch: 1, offset: 0 },
    fields: bytes === undefined ? {} : { bytes },
  }) as StreamFrame;

function rawStream(parts: readonly Uint8Array[], isStuck: boolean): Duplex {
  let writes = 0;
  const output = new PassThrough();
  for (const part of parts) output.write(part);
  output.end();
  const raw: Duplex = new Duplex({
    read() {
      output.once('readable', () => {
        for (let part = output.read(); part !== null; part = output.read()) raw.push(part);
      });
      output.once('end', () => raw.push(null));
    },
    write(_chunk, _encoding, callback) {
      writes += 1;
      if (!isStuck || writes === 1) callback();
    },
  });
  return raw;
}
