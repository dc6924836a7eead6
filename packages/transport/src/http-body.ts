import { DsecError, KIB } from '@dsec/std';

/** Longest line of a stream of lines, and the most that the lines of one event hold together. */
const LINE_BYTES_MAX = 1024 * KIB;

/** A whole body of at most so many bytes; `too-large` beyond that, without reading further. */
export async function readBounded(
  body: AsyncIterable<Uint8Array>,
  bytesMax: number,
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    if (bytes > bytesMax) {
      throw new DsecError('too-large', `a response has at most ${bytesMax} bytes here`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, bytes);
}

export function parseJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString('utf8'));
  } catch (cause) {
    throw new DsecError('protocol', 'the response is not JSON', { cause });
  }
}

/** The lines of a body, without their ends. A line that does not end, or is too long, is `protocol`. */
export async function* readLines(body: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  for await (const chunk of body) {
    let rest = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    for (let at = rest.indexOf(10); at >= 0; at = rest.indexOf(10)) {
      yield Buffer.concat([...pending, rest.subarray(0, at)]).toString('utf8');
      pending = [];
      pendingBytes = 0;
      rest = rest.subarray(at + 1);
    }
    pending.push(rest);
    pendingBytes += rest.length;
    if (pendingBytes > LINE_BYTES_MAX) {
      throw new DsecError('protocol', `a line has more than ${LINE_BYTES_MAX} bytes`);
    }
  }
  if (pendingBytes > 0) throw new DsecError('protocol', 'the response ended inside a line');
}

export interface ServerEvent {
  readonly id: string;
  readonly data: string;
}

/** Server-sent events: `id` and `data` of each; comments and other fields are passed over. */
export async function* readEvents(body: AsyncIterable<Uint8Array>): AsyncGenerator<ServerEvent> {
  let id = '';
  let data: string[] = [];
  let dataLength = 0;
  for await (const line of readLines(body)) {
    if (line === '') {
      if (data.length > 0) yield { id, data: data.join('\n') };
      data = [];
      dataLength = 0;
      continue;
    }
    const [field, value = ''] = splitField(line);
    if (field === 'id') id = value;
    if (field !== 'data') continue;
    data.push(value);
    dataLength += value.length + 1;
    if (dataLength > LINE_BYTES_MAX) {
      throw new DsecError('protocol', `an event has more than ${LINE_BYTES_MAX} bytes`);
    }
  }
}

function splitField(line: string): readonly [string, string] {
  const colon = line.indexOf(':');
  if (colon < 0) return [line, ''];
  const value = line.slice(colon + 1);
  return [line.slice(0, colon), value.startsWith(' ') ? value.slice(1) : value];
}
