/** The output of commands over HTTP: from any offset, taken up again where a connection broke off. */
import { type Exec, type OutputTotals, type QueryOf, ROUTES, type RouteOf } from '@dsec/protocol';
import { MINUTE_MS } from '@dsec/std';
import { clientErrorOf } from './errors.ts';
import { ExecResult, type OutputBytes } from './exec-result.ts';
import { createPatience } from './patience.ts';
import type { Server } from './server.ts';

export type OutputName = 'stdout' | 'stderr';

/** By which a command is found. */
export interface ExecPlace {
  readonly sandboxId: string;
  readonly execId: string;
}

export interface OutputRange {
  readonly stream: OutputName;
  readonly offset: number;
  /** Absent: to the end, waiting for what is not there yet. */
  readonly lengthBytes?: number;
}

/** A connection on which a command is silent for longer is made anew: it may be dead. */
const SILENCE_MS = MINUTE_MS;

/** Bytes of an output. Throws `output-lost` where they are no longer kept. */
export async function* readOutput(
  server: Server,
  params: ExecPlace,
  { stream, offset, lengthBytes }: OutputRange,
  signal?: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const patience = createPatience(server.timeoutMs);
  const end = offset + (lengthBytes ?? Infinity);
  for (let at = offset; at < end; ) {
    const query: QueryOf<RouteOf<'readExecOutput'>> = {
      ...{ stream, offset: at },
      ...(lengthBytes === undefined ? { follow: true } : { lengthBytes: end - at }),
    };
    try {
      const settings = { signal, silenceMs: SILENCE_MS };
      const { body } = await server.call(ROUTES.readExecOutput, { params, query }, settings);
      patience.opened();
      for await (const bytes of body) {
        at += bytes.byteLength;
        yield bytes;
        patience.progressed();
      }
      return;
    } catch (thrown) {
      await patience.pause(clientErrorOf(thrown), signal);
    }
  }
}

/** The beginning of an output that came with an answer. */
export interface InlineOutput {
  readonly offset: number;
  readonly text: string;
  readonly base64?: string;
}

/** What a command that has ended wrote, at most so much of each output. */
export async function resultOf(
  server: Server,
  params: ExecPlace,
  exec: Exec,
  inline: { readonly stdout?: InlineOutput; readonly stderr?: InlineOutput },
  bytesMax: number,
  signal?: AbortSignal,
): Promise<ExecResult> {
  const collect = (stream: OutputName) =>
    collectOutput(exec[stream], inline[stream], bytesMax, async (offset, lengthBytes) => {
      const pieces: Uint8Array[] = [];
      const range = { stream, offset, lengthBytes };
      for await (const bytes of readOutput(server, params, range, signal)) pieces.push(bytes);
      return pieces;
    });
  const [stdout, stderr] = await Promise.all([collect('stdout'), collect('stderr')]);
  return new ExecResult(exec, stdout, stderr);
}

async function collectOutput(
  totals: OutputTotals,
  inline: InlineOutput | undefined,
  bytesMax: number,
  read: (offset: number, lengthBytes: number) => Promise<Uint8Array[]>,
): Promise<OutputBytes> {
  const { totalBytes } = totals;
  const [first, second] = rangesOf(totals, bytesMax);
  const truncated = first.length + second.length < totalBytes;
  const begun = inline?.offset === 0 ? bytesOfInline(inline).subarray(0, first.length) : EMPTY;
  const pieces: Uint8Array[] = [begun];
  if (begun.length < first.length) {
    pieces.push(...(await read(begun.length, first.length - begun.length)));
  }
  if (second.length > 0) pieces.push(...(await read(second.offset, second.length)));
  return { bytes: pieces.length === 1 ? begun : Buffer.concat(pieces), truncated };
}

const EMPTY = new Uint8Array(0);

/** The beginning and the end that are kept and wanted; the second is empty where they meet. */
function rangesOf({ totalBytes, truncated, headBytes, tailOffset }: OutputTotals, most: number) {
  const head = truncated ? headBytes : totalBytes;
  const tail = truncated ? totalBytes - tailOffset : 0;
  if (head + tail <= most) return [{ length: head }, { offset: tailOffset, length: tail }] as const;
  const first = Math.min(head, Math.floor(most / 2));
  const second = Math.min(most - first, truncated ? tail : totalBytes - first);
  return [{ length: first }, { offset: totalBytes - second, length: second }] as const;
}

function bytesOfInline({ text, base64 }: InlineOutput): Uint8Array {
  return base64 === undefined ? Buffer.from(text) : Buffer.from(base64, 'base64');
}
