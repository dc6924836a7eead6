import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  AETHER_FRAMES,
  type AetherFrame,
  createFrameDecoder,
  type ExecExitFields,
  type ExecStartFields,
  encodeFrame,
  type FrameOf,
} from '@dsec/protocol';
import { DsecError, type ErrorCode } from '@dsec/std';
import { connectUnix } from '@dsec/transport';

const NATIVE = new URL('../../native/build/', import.meta.url).pathname;

/** Longer than any test waits for one frame; the lab's processor is an emulated one. */
const SILENCE_MS = process.env.DSEC_LAB === '1' ? 150_000 : 45_000;

export type FrameType = AetherFrame['type'];
type FrameNamed<T extends FrameType> = Extract<FrameOf<typeof AETHER_FRAMES>, { type: T }>;
type FieldsOf<T extends FrameType> = FrameNamed<T> extends { fields: infer F } ? F : never;

export interface AetherOptions {
  /** Runs it as PID 1 of a PID namespace with a /proc of its own. */
  readonly pidNamespace?: boolean;
  /** Commands live in a user namespace that does not know aether's id. */
  readonly sessions?: boolean;
  readonly binary?: string;
  readonly environment?: Record<string, string>;
}

export interface Aether {
  readonly path: string;
  /** What was started: aether itself, or the unshare that it is a child of. */
  readonly process: ChildProcess;
  /** The process number of aether, as the host sees it. */
  readonly pid: number;
  readonly ended: Promise<{ code: number | null; signal: NodeJS.Signals | null }>;
  connect(options?: { epoch?: number }): Promise<AetherLink>;
  stop(): Promise<void>;
}

/** Starts aether as an ordinary child, with a socket of its own to listen on. */
export async function startAether(options: AetherOptions = {}): Promise<Aether> {
  const directory = mkdtempSync(join(tmpdir(), 'dsec-aether-'));
  const path = join(directory, 'sock');
  const binary = join(NATIVE, options.binary ?? process.env.DSEC_TEST_AETHER ?? 'aether');
  const words = [join(NATIVE, 'aether_start'), ...(options.sessions ? ['--sessions'] : [])];
  words.push(path, binary, ...(options.sessions ? ['--session-ids', '0:1:65536'] : []));
  if (options.pidNamespace) {
    words.unshift('unshare', '--pid', '--mount', '--fork', '--mount-proc', '--kill-child', '--');
    // What aether_start sees to for itself: it goes with a test run that was killed.
    words.unshift('setpriv', '--pdeathsig', 'KILL');
  }
  const [program = '', ...args] = words;
  const child = spawn(program, args, {
    // Not inherited: what a command leaves behind may hold it longer than the tests run.
    stdio: ['ignore', 'ignore', 'pipe'],
    env: { ...options.environment, ASAN_OPTIONS: 'detect_leaks=0', PATH: process.env.PATH },
  });
  // Of a test that failed before it came to its stop.
  const atExit = () => child.kill('SIGKILL');
  process.once('exit', atExit);
  child.stderr?.on('data', (text) => process.stderr.write(text));
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  const links: AetherLink[] = [];
  await until(() => existsSync(path) || child.exitCode !== null, 'the socket of aether');
  return {
    path,
    process: child,
    get pid() {
      return child.pid ?? 0;
    },
    ended,
    async connect({ epoch = 1 } = {}) {
      const link = await openLink(path, epoch);
      links.push(link);
      return link;
    },
    async stop() {
      for (const link of links) link.close();
      child.kill('SIGKILL');
      await ended;
      process.off('exit', atExit);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Polls until `check` holds; throws `deadline-exceeded` after ten seconds. */
export async function until(
  check: () => boolean | Promise<boolean>,
  what: string | (() => string),
  timeoutMs = 10_000,
): Promise<void> {
  const end = performance.now() + timeoutMs;
  while (!(await check())) {
    if (performance.now() > end) {
      throw new DsecError('deadline-exceeded', typeof what === 'string' ? what : what());
    }
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

export interface Stream {
  readonly number: number;
  send<T extends FrameType>(type: T, rest: Omit<FrameNamed<T>, 'type' | 'stream' | 'epoch'>): void;
  /** The next frame on the stream. Rejects when the link closes. */
  next(): Promise<AetherFrame>;
  /** Frees the number and drops what still comes. */
  leave(): void;
}

export interface AetherLink {
  readonly socket: Socket;
  readonly welcome: FieldsOf<'welcome'>;
  /** Resolves with the last error on stream 0, if there was one. */
  readonly closed: Promise<FieldsOf<'error'> | undefined>;
  open(): Stream;
  /** Sends a request and gives its only answer. An `error` is thrown as the typed error that it is. */
  ask<T extends FrameType>(type: T, fields: FieldsOf<T>): Promise<AetherFrame>;
  ping(): Promise<void>;
  write(bytes: Uint8Array): void;
  close(): void;
}

/** Frames that came and were not taken, by their stream. */
interface Mail {
  add(stream: number): void;
  remove(stream: number): void;
  take(stream: number): Promise<AetherFrame>;
  readonly closed: Promise<FieldsOf<'error'> | undefined>;
}

function receiveMail(socket: Socket): Mail {
  const decoder = createFrameDecoder(AETHER_FRAMES, { from: 'server' });
  const boxes = new Map<number, { waiting: AetherFrame[]; wake?: () => void }>();
  let isClosed = false;
  let lastError: FieldsOf<'error'> | undefined;
  socket.on('data', (chunk) => {
    for (const frame of decoder.push(chunk)) {
      if (frame.type === 'error' && frame.stream === 0) lastError = frame.fields;
      const box = boxes.get(frame.stream);
      box?.waiting.push(frame);
      box?.wake?.();
    }
  });
  const closed = new Promise<FieldsOf<'error'> | undefined>((resolve) => {
    socket.once('close', () => {
      isClosed = true;
      for (const box of boxes.values()) box.wake?.();
      resolve(lastError);
    });
  });
  return {
    closed,
    add: (stream) => boxes.set(stream, { waiting: [] }),
    remove: (stream) => boxes.delete(stream),
    async take(stream) {
      const box = boxes.get(stream);
      if (box === undefined) throw new DsecError('internal', `stream ${stream} is not open`);
      while (box.waiting.length === 0) {
        if (isClosed) throw lastError ? typed(lastError) : new DsecError('unavailable', 'closed');
        await new Promise<void>((resolve, reject) => {
          const late = new DsecError('deadline-exceeded', `nothing on stream ${stream}`);
          const timer = setTimeout(() => reject(late), SILENCE_MS);
          box.wake = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      return box.waiting.shift() as AetherFrame;
    },
  };
}

/** Connects, says hello, and waits for the welcome. Throws the error that a refusal says. */
export async function openLink(path: string, epoch: number): Promise<AetherLink> {
  const socket = connectUnix(path);
  await new Promise<void>((resolve, reject) =>
    socket.once('connect', resolve).once('error', reject),
  );
  socket.on('error', () => {});
  const mail = receiveMail(socket);
  const write = (frame: object) =>
    socket.write(encodeFrame(AETHER_FRAMES, { epoch, offset: 0, ...frame } as AetherFrame));
  const nonce = randomBytes(16);
  mail.add(0);
  write({ type: 'hello', stream: 0, fields: { nonce, versionMax: 1, sandboxId: 'sb-a-b-c' } });
  const welcome = unlessError(await mail.take(0));
  if (welcome.type !== 'welcome' || !nonce.equals(welcome.fields.nonce)) {
    throw new DsecError('protocol', 'aether answered with something else than a welcome');
  }
  return linkOver(socket, mail, welcome.fields, write);
}

function linkOver(
  socket: Socket,
  mail: Mail,
  welcome: FieldsOf<'welcome'>,
  write: (frame: object) => void,
): AetherLink {
  let lastStream = 0;
  let pings = 0;
  const open = (): Stream => {
    lastStream += 1;
    const number = lastStream;
    mail.add(number);
    return {
      number,
      send: (type, rest) => write({ type, stream: number, ...rest }),
      next: () => mail.take(number),
      leave: () => mail.remove(number),
    };
  };
  return {
    socket,
    welcome,
    closed: mail.closed,
    open,
    async ask(type, fields) {
      const stream = open();
      write({ type, stream: stream.number, fields });
      try {
        return unlessError(await stream.next());
      } finally {
        stream.leave();
      }
    },
    async ping() {
      pings += 1;
      write({ type: 'ping', stream: 0, offset: pings, fields: {} });
      const pong = await mail.take(0);
      if (pong.type !== 'pong' || pong.offset !== pings) {
        throw new DsecError('protocol', `${pong.type} ${pong.offset} for ping ${pings}`);
      }
    },
    write: (bytes) => socket.write(bytes),
    close: () => socket.destroy(),
  };
}

function typed(fields: FieldsOf<'error'>): DsecError {
  return new DsecError(fields.code as ErrorCode, fields.message);
}

export function unlessError(frame: AetherFrame): AetherFrame {
  if (frame.type === 'error') throw typed(frame.fields);
  return frame;
}

export interface CommandOptions extends Partial<Omit<ExecStartFields, 'env'>> {
  readonly env?: string[];
  /** Written to standard input, which then ends. */
  readonly input?: Uint8Array | string;
  /** Waits so long before it acknowledges anything. */
  readonly delayMs?: number;
  /** False: what arrives is counted, not kept. */
  readonly keep?: boolean;
  /** Of running time from its first output on, however long a busy machine takes to get there. */
  readonly limitMs?: number;
}

export interface CommandResult extends ExecExitFields {
  readonly stdout: Buffer;
  readonly stderr: Buffer;
}

let commands = 0;

export function commandId(): string {
  commands += 1;
  return `cmd-${process.pid}-${commands}`;
}

export function startFields(options: CommandOptions): ExecStartFields {
  const { input, keep: _, delayMs: __, limitMs: ___, env = [], ...rest } = options;
  return {
    execId: commandId(),
    stdinOpen: input !== undefined,
    windowBytes: 256 * 1024,
    ...rest,
    env: env.map((line) => Buffer.from(line)),
  } as ExecStartFields;
}

/** Shell text, or a whole command. */
export async function run(
  link: AetherLink,
  what: string | string[] | CommandOptions,
  more: CommandOptions = {},
): Promise<CommandResult> {
  const options: CommandOptions =
    typeof what === 'string'
      ? { shell: Buffer.from(what), ...more }
      : Array.isArray(what)
        ? { argv: what.map((word) => Buffer.from(word)), ...more }
        : { ...what, ...more };
  const stream = link.open();
  const fields = startFields(options);
  stream.send('exec-start', { offset: 0, fields });
  return follow(link, stream, fields, options);
}

/** Reads a started or attached command to its end, acknowledging all. */
export async function follow(
  link: AetherLink,
  stream: Stream,
  fields: Pick<ExecStartFields, 'execId' | 'windowBytes'>,
  options: CommandOptions = {},
): Promise<CommandResult> {
  const kept = { stdout: [] as Buffer[], stderr: [] as Buffer[] };
  const acknowledge = (channel: 'stdout' | 'stderr', offset: number) => {
    stream.send('ack', { offset, fields: { channel } });
    stream.send('credit', { offset: offset + fields.windowBytes, fields: { channel } });
  };
  const input = options.input === undefined ? undefined : Buffer.from(options.input);
  const beganMs = performance.now();
  let written = 0;
  const feed = (credit: number) => {
    while (input !== undefined && written < Math.min(input.length, credit)) {
      const end = Math.min(input.length, credit, written + 65_536);
      const last = end === input.length;
      stream.send('stdin', { offset: written, data: input.subarray(written, end), end: last });
      written = end;
    }
  };
  try {
    for (;;) {
      const frame = unlessError(await stream.next());
      if (frame.type === 'exec-started') {
        if (input?.length === 0) stream.send('stdin', { offset: 0, data: input, end: true });
        feed(frame.fields.stdinCredit);
      } else if (frame.type === 'stdout' || frame.type === 'stderr') {
        if (options.limitMs !== undefined && frame.offset === 0) {
          const timeoutMs = Math.ceil(performance.now() - beganMs) + options.limitMs;
          stream.send('timeout', { offset: 0, fields: { timeoutMs } });
        }
        if (options.keep !== false) kept[frame.type].push(Buffer.from(frame.data));
        if (options.delayMs !== undefined && frame.offset === 0) {
          await new Promise((resolve) => setTimeout(resolve, options.delayMs));
        }
        if (frame.data.byteLength > 0)
          acknowledge(frame.type, frame.offset + frame.data.byteLength);
      } else if (frame.type === 'credit') {
        feed(frame.offset);
      } else if (frame.type === 'exec-exit') {
        stream.send('exec-exit-ack', { offset: 0, fields: { execId: fields.execId } });
        return {
          ...frame.fields,
          stdout: Buffer.concat(kept.stdout),
          stderr: Buffer.concat(kept.stderr),
        };
      }
    }
  } catch (error) {
    link.socket.writable &&
      stream.send('exec-exit-ack', { offset: 0, fields: { execId: fields.execId } });
    throw error;
  } finally {
    stream.leave();
  }
}
