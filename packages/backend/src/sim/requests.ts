import type { Duplex } from 'node:stream';
import { type AetherFrame, FRAME_DATA_BYTES_MAX, WINDOW_BYTES_MIN } from '@dsec/protocol';
import { DsecError, KIB } from '@dsec/std';
import { type AgentContext, HELD, latin1, userOf } from './agent-context.ts';
import { type AgentLink, errorFrame, type Outgoing, type StreamOwner } from './agent-link.ts';
import { duplexEnds } from './duplex-ends.ts';
import type { SimFiles } from './files.ts';
import { createInlet } from './inlet.ts';
import { createOutlet } from './outlet.ts';
import type { ByteSink, ByteSource } from './ports.ts';
import { unlessAborted } from './running-time.ts';

export type RequestFrame = Extract<
  AetherFrame,
  {
    type:
      | 'file-read'
      | 'file-write'
      | 'file-stat'
      | 'file-list'
      | 'file-mkdir'
      | 'file-move'
      | 'file-remove'
      | 'port-open';
  }
>;

/** Requests of files and ports: they end with their connection. */
export interface Requests {
  open(link: AgentLink, frame: RequestFrame): void;
  /** Gives a second connection to the request with this token, if there is one. */
  offer(token: Uint8Array, duplex: Duplex): boolean;
}

const REQUESTS_MAX = 64;
const TOKEN_DEADLINE_MS = 10_000;
/** More than the fields of an entry take beside its name and target. */
const ENTRY_BYTES = 128;
const PAGE_BYTES_MAX = 60 * KIB;
const CURSOR_START = 'after-it:';

interface Request {
  readonly link: AgentLink;
  readonly frame: RequestFrame;
  readonly life: AbortController;
  /** Gives the raw stream to who waits for it. */
  raw?: (duplex: Duplex) => void;
  /** Of a raw write: how many bytes the host says that it wrote, and who waits for that. */
  endedBytes?: number;
  ended?: (bytes: number) => void;
}

/** `findGuest` gives the connection that has shown a token already. */
export function createRequests(
  context: AgentContext,
  findGuest: (token: Uint8Array) => Duplex | undefined,
): Requests {
  const open = new Set<Request>();
  return {
    open(link, frame) {
      if (context.isHeld) return link.putError(frame.stream, HELD);
      if (open.size >= REQUESTS_MAX) {
        return link.putError(frame.stream, new DsecError('overloaded', 'too many requests'));
      }
      const request: Request = { link, frame, life: new AbortController() };
      open.add(request);
      void serve(context, request, findGuest).finally(() => open.delete(request));
    },
    offer(token, duplex) {
      for (const request of open) {
        if (request.raw === undefined || !isToken(request.frame, token)) continue;
        request.raw(duplex);
        return true;
      }
      return false;
    },
  };
}

function tokenOf({ fields }: RequestFrame): Uint8Array | undefined {
  return 'rawToken' in fields ? fields.rawToken : undefined;
}

function isToken(frame: RequestFrame, token: Uint8Array): boolean {
  return Buffer.compare(tokenOf(frame) ?? new Uint8Array(0), token) === 0;
}

async function serve(
  context: AgentContext,
  request: Request,
  findGuest: (token: Uint8Array) => Duplex | undefined,
): Promise<void> {
  const { link, frame, life } = request;
  const token = tokenOf(frame);
  const ends = token === undefined ? framedEnds(request) : undefined;
  if (ends === undefined) link.open(frame.stream, rawOwner(request));
  try {
    const raw = token && (findGuest(token) ?? (await rawStream(context, request)));
    const { source, sink, isDone } = ends ?? duplexEnds(raw as Duplex, life.signal);
    const isRawWrite = raw !== undefined && frame.type === 'file-write';
    const input = isRawWrite ? wholeSource(request, source) : source;
    const answer = await work(context, frame, input, sink);
    await isDone();
    if (life.signal.aborted) return;
    link.leave(frame.stream);
    link.put(frame.stream, answer);
  } catch (thrown) {
    if (life.signal.aborted) return;
    link.leave(frame.stream);
    link.put(frame.stream, errorFrame(thrown));
  }
}

/** What a stream without bytes of its own does: ends when asked to. */
function ownerOf(request: Request, produce: StreamOwner['produce']): StreamOwner {
  const { link, frame, life } = request;
  const abort = () => life.abort(new DsecError('cancelled', 'the request was cancelled'));
  return {
    produce,
    consume(next) {
      if (next.type !== 'cancel' && next.type !== 'error') {
        throw new DsecError('protocol', `${next.type} on the stream of ${frame.type}`);
      }
      abort();
      link.leave(frame.stream);
      if (next.type === 'cancel') link.putError(frame.stream, life.signal.reason);
    },
    detached: abort,
  };
}

/** The framed side of a request whose bytes go another way: of a write it is told the end. */
function rawOwner(request: Request): StreamOwner {
  const owner = ownerOf(request, () => undefined);
  const { type } = request.frame;
  return {
    ...owner,
    consume(next) {
      if (next.type !== 'stdin' || type !== 'file-write') return owner.consume(next);
      const { endedBytes = next.offset } = request;
      if (!next.end || next.data.byteLength > 0 || next.offset !== endedBytes) {
        throw new DsecError('protocol', 'bytes beside those of a raw stream');
      }
      request.endedBytes = endedBytes;
      request.ended?.(endedBytes);
    },
  };
}

/**
 * The bytes of a raw stream, at whose end they are as many as the host says. Its end alone says nothing: it
 * also comes when the host dies.
 */
function wholeSource(request: Request, source: ByteSource): ByteSource {
  const { signal } = request.life;
  let bytes = 0;
  return {
    async read() {
      const part = await source.read();
      bytes += part?.byteLength ?? 0;
      if (part !== undefined) return part;
      const said = new Promise<number>((resolve) => {
        request.ended = resolve;
        if (request.endedBytes !== undefined) resolve(request.endedBytes);
      });
      if ((await unlessAborted(said, signal)) === bytes) return undefined;
      throw new DsecError('unavailable', 'bytes of the file were lost on their way');
    },
  };
}

function rawStream(context: AgentContext, request: Request): Promise<Duplex> {
  const { signal } = request.life;
  return new Promise((resolve, reject) => {
    const late = new DsecError('deadline-exceeded', 'nobody connected with the raw token');
    const wait = new AbortController();
    const settle = () => {
      delete request.raw;
      wait.abort();
    };
    request.raw = (duplex) => {
      settle();
      resolve(duplex);
    };
    signal.addEventListener('abort', () => {
      settle();
      reject(signal.reason);
    });
    context.time.sleep(TOKEN_DEADLINE_MS, wait.signal).then(
      () => {
        settle();
        reject(late);
      },
      () => {},
    );
  });
}

/** The bytes of a request in frames of its stream. */
function framedEnds(request: Request) {
  const { link, frame, life } = request;
  const hasInput = frame.type === 'file-write' || frame.type === 'port-open';
  const ready = () => link.markReady(frame.stream);
  const inlet = createInlet(hasInput, ready);
  let done = () => {};
  const drained = new Promise<void>((resolve) => {
    done = resolve;
  });
  const outlet = createOutlet({ windowBytes: WINDOW_BYTES_MIN, keeps: false, onReady: ready });
  const owner = ownerOf(request, () => {
    const answer = inlet.answer();
    if (answer !== undefined) return { ...answer, fields: { channel: 'stdin' } };
    const piece = outlet.take();
    if (outlet.isDone) done();
    return piece && { type: 'stdout', ...piece };
  });
  link.open(frame.stream, {
    ...owner,
    consume(next) {
      if (next.type === 'stdin') return inlet.take(next.offset, next.data, next.end);
      const isChannel = next.type === 'ack' || next.type === 'credit';
      if (!isChannel) return owner.consume(next);
      if (next.fields.channel !== 'stdout') {
        throw new DsecError('protocol', `${next.type} of ${next.fields.channel}`);
      }
      if (next.type === 'ack') outlet.acknowledge(next.offset);
      else outlet.grant(next.offset);
    },
  });
  const sends = frame.type === 'file-read' || frame.type === 'port-open';
  life.signal.addEventListener('abort', done);
  return {
    source: { read: () => inlet.read(life.signal) },
    sink: {
      write: (bytes: Uint8Array) => outlet.write(bytes, life.signal),
      end: () => outlet.end(),
    },
    /** Resolves when all that was written has been sent. */
    isDone: async () => {
      if (sends) await drained;
    },
  };
}

async function work(
  context: AgentContext,
  frame: RequestFrame,
  source: ByteSource,
  sink: ByteSink,
): Promise<Outgoing> {
  const { files } = context;
  await context.time.thawed();
  const done: Outgoing = { type: 'done', fields: {} };
  switch (frame.type) {
    case 'file-read':
      return readFile(files, frame, sink);
    case 'file-write':
      return writeFile(files, frame, source);
    case 'file-stat': {
      const { path, followSymlinks } = frame.fields;
      return { type: 'file-attributes', fields: files.stat(latin1(path), followSymlinks) };
    }
    case 'file-list':
      return listPage(files, frame);
    case 'file-mkdir': {
      const { path, mode, createParents, user } = frame.fields;
      files.mkdir(latin1(path), { mode, createParents, user: userOf(user) });
      return done;
    }
    case 'file-move':
      files.move(latin1(frame.fields.source), latin1(frame.fields.target), frame.fields.replace);
      return done;
    case 'file-remove':
      files.remove(latin1(frame.fields.path), frame.fields.recursive);
      return done;
    case 'port-open':
      return relay(context, frame.fields.port, source, sink);
  }
}

async function readFile(
  files: SimFiles,
  { fields }: Extract<RequestFrame, { type: 'file-read' }>,
  sink: ByteSink,
): Promise<Outgoing> {
  const all = files.read(latin1(fields.path), userOf(fields.user));
  const end = fields.lengthBytes === undefined ? all.length : fields.offset + fields.lengthBytes;
  const bytes = all.subarray(fields.offset, end);
  for (let at = 0; at < bytes.length; at += FRAME_DATA_BYTES_MAX) {
    await sink.write(bytes.subarray(at, at + FRAME_DATA_BYTES_MAX));
  }
  sink.end();
  return { type: 'done', fields: { bytes: bytes.length } };
}

async function writeFile(
  files: SimFiles,
  { fields }: Extract<RequestFrame, { type: 'file-write' }>,
  source: ByteSource,
): Promise<Outgoing> {
  const { mode, createParents, exclusive } = fields;
  const options = { mode, createParents, exclusive, user: userOf(fields.user) };
  files.checkWrite(latin1(fields.path), options);
  const parts: Uint8Array[] = [];
  for (let part = await source.read(); part !== undefined; part = await source.read()) {
    parts.push(part);
  }
  const bytes = Buffer.concat(parts);
  files.write(latin1(fields.path), bytes, options);
  return { type: 'done', fields: { bytes: bytes.length } };
}

function listPage(
  files: SimFiles,
  { fields }: Extract<RequestFrame, { type: 'file-list' }>,
): Outgoing {
  const cursor = fields.cursor && latin1(fields.cursor);
  if (cursor !== undefined && !cursor.startsWith(CURSOR_START)) {
    throw new DsecError('invalid-argument', 'the cursor is of no listing');
  }
  const after = cursor?.slice(CURSOR_START.length) ?? '';
  const rest = files.list(latin1(fields.path)).filter(({ name }) => latin1(name) > after);
  let bytes = 0;
  const entries = rest.slice(0, fields.entriesMax).filter(({ name, symlinkTarget }) => {
    bytes += ENTRY_BYTES + name.byteLength + (symlinkTarget?.byteLength ?? 0);
    return bytes <= PAGE_BYTES_MAX;
  });
  const last = entries.at(-1);
  const more = last !== undefined && entries.length < rest.length;
  if (!more) return { type: 'file-entries', fields: { entries } };
  const next = Buffer.from(`${CURSOR_START}${latin1(last.name)}`, 'latin1');
  return { type: 'file-entries', fields: { entries, cursor: next } };
}

async function relay(
  { ports }: AgentContext,
  port: number,
  source: ByteSource,
  sink: ByteSink,
): Promise<Outgoing> {
  const server = Object.hasOwn(ports, port) ? ports[port] : undefined;
  if (server === undefined) throw new DsecError('unavailable', `nothing listens on port ${port}`);
  let bytes = 0;
  await server(source, {
    write(part) {
      bytes += part.byteLength;
      return sink.write(part);
    },
    end: () => {},
  });
  sink.end();
  return { type: 'done', fields: { bytes } };
}
