import {
  ARGUMENT_BYTES_MAX,
  argv,
  environment,
  filePath,
  identifier,
  LIST_PAGE_BYTES_MAX,
  mode,
  NAME_BYTES_MAX,
  nonce,
  PATH_BYTES_MAX,
  PtySize,
  rawToken,
  trace,
  user,
  WINDOW_BYTES_MAX,
  WINDOW_BYTES_MIN,
} from './aether-fields.ts';
import { SessionClose, SessionOpen, SessionRules, SessionWatch } from './aether-session.ts';
import { control, data, defineFrameProtocol, type FrameOf } from './frame.ts';
import {
  bool,
  bytes,
  choice,
  i32,
  i64,
  listOf,
  type MessageValue,
  message,
  optional,
  path,
  string,
  struct,
  u8,
  u16,
  u32,
  u64,
} from './wire-fields.ts';

export {
  ARGUMENT_BYTES_MAX,
  NAME_BYTES_MAX,
  NONCE_BYTES,
  PATH_BYTES_MAX,
  STREAMS_MAX,
  USER_BYTES_MAX,
  WINDOW_BYTES_MAX,
  WINDOW_BYTES_MIN,
} from './aether-fields.ts';

export const CHANNELS = ['stdin', 'stdout', 'stderr'] as const;
export type Channel = (typeof CHANNELS)[number];
const channel = (tag: number) => choice(tag, CHANNELS);

const Hello = message('hello', {
  nonce: nonce(1),
  /** Highest version of these frames that the host speaks. */
  versionMax: u8(2, { minimum: 1 }),
  sandboxId: identifier(3),
});

const Welcome = message('welcome', {
  nonce: nonce(1),
  /** The version that both will speak from the next frame on. */
  version: u8(2, { minimum: 1 }),
  agentVersion: string(3, { bytesMin: 1, bytesMax: 64 }),
  /** Drawn when the agent started: another one means another agent, which knows no commands. */
  instance: nonce(4),
});

const Empty = message('empty', {});

const ErrorFields = message('error', {
  /** A code of the error table. */
  code: string(1, { bytesMin: 1, bytesMax: 40 }),
  message: string(2, { bytesMax: 1024 }),
  /** Linux errno, positive. */
  errnoValue: optional(i32(3, { minimum: 1, maximum: 4095 })),
});

/**
 * What a restored copy must be told before it is `ready`. Answered by `reseeded`, or by `error`: then it is
 * not.
 */
const Reseed = message('reseed', {
  entropy: bytes(1, { bytesMin: 32, bytesMax: 512 }),
  /** Wall clock: milliseconds since the Unix epoch. */
  wallMs: optional(u64(2)),
  hostname: optional(string(3, { bytesMin: 1, bytesMax: 63 })),
  machineId: optional(nonce(4)),
});

/**
 * Either `argv` or `shell`. With `sessionId` the command runs in that session's shell and its status is not
 * trusted.
 */
const ExecStart = message('exec-start', {
  execId: identifier(1),
  argv: argv(2),
  /** Text for `sh -c`, or for the session's shell. */
  shell: optional(path(3, { bytesMin: 1, bytesMax: ARGUMENT_BYTES_MAX })),
  sessionId: optional(identifier(4)),
  cwd: optional(filePath(5)),
  env: environment(6),
  user: user(7),
  pty: optional(struct(8, PtySize)),
  /** Running time: paused time does not count. */
  timeoutMs: optional(u64(9, { minimum: 1 })),
  /** False: the command reads end of file at once. */
  stdinOpen: bool(10),
  /** Unacknowledged bytes kept for each output channel, and their first credit. */
  windowBytes: u32(11, { minimum: WINDOW_BYTES_MIN, maximum: WINDOW_BYTES_MAX }),
  trace: trace(12),
});

/** `not-found` when aether does not know the id: it was never started, or its result was acknowledged. */
const ExecAttach = message('exec-attach', {
  execId: identifier(1),
  /** What the host has made durable: aether goes on from there. */
  stdoutOffset: u64(2),
  stderrOffset: u64(3),
});

const ExecStarted = message('exec-started', {
  /** True when the id was known already. */
  attached: bool(1),
  /** Bytes of stdin that aether has taken. */
  stdinOffset: u64(2),
  stdinCredit: u64(3),
});

/**
 * Sent after the last byte of both outputs: the one before their end of file or, where processes that
 * outlive the command hold them open, the last one that was there a moment after its end. Either
 * `exitCode` or `signal`, taken from wait4.
 */
const ExecExit = message('exec-exit', {
  execId: identifier(1),
  exitCode: optional(u8(2)),
  signal: optional(u8(3, { minimum: 1, maximum: 64 })),
  coreDumped: bool(4),
  timedOut: bool(5),
  /** False for a command of a session: the sandbox's own shell reported it. */
  trusted: bool(6),
  stdoutBytes: u64(7),
  stderrBytes: u64(8),
  runningMs: u64(9),
  cpuUserUs: u64(10),
  cpuSystemUs: u64(11),
  memoryPeakBytes: u64(12),
  /** A `quiesce` came while it ran. */
  endedByPolicy: optional(bool(13)),
});

const ExecExitAck = message('exec-exit-ack', { execId: identifier(1) });

export const SIGNAL_SCOPES = ['leader', 'tree'] as const;

const Signal = message('signal', {
  signal: u8(1, { minimum: 1, maximum: 64 }),
  /**
   * `leader`: the command's first process, or a terminal's foreground group. `tree`: every process it left.
   */
  scope: choice(2, SIGNAL_SCOPES),
});

/** Replaces the limit on running time, counted from the start of the command. Absent: none. */
const Timeout = message('timeout', { timeoutMs: optional(u64(1, { minimum: 1 })) });

const ChannelOf = message('channel', { channel: channel(1) });

const FileRead = message('file-read', {
  path: filePath(1),
  user: user(2),
  offset: u64(3),
  /** Absent: to the end of the file. */
  lengthBytes: optional(u64(4)),
  rawToken: rawToken(5),
  trace: trace(6),
});

/** The file appears under its name when all bytes are there; until then readers see the old one. */
const FileWrite = message('file-write', {
  path: filePath(1),
  user: user(2),
  mode: optional(mode(3)),
  createParents: bool(4),
  /** True: an existing name is `already-exists`. */
  exclusive: bool(5),
  rawToken: rawToken(6),
  trace: trace(7),
});

const FileStat = message('file-stat', {
  path: filePath(1),
  user: user(2),
  followSymlinks: bool(3),
  trace: trace(4),
});

const FileList = message('file-list', {
  path: filePath(1),
  user: user(2),
  /** Where the page before ended; absent: from the start. */
  cursor: optional(bytes(3, { bytesMin: 1, bytesMax: NAME_BYTES_MAX + 9 })),
  entriesMax: u16(4, { minimum: 1, maximum: 1024 }),
  trace: trace(5),
});

const FileMkdir = message('file-mkdir', {
  path: filePath(1),
  user: user(2),
  mode: optional(mode(3)),
  createParents: bool(4),
  trace: trace(5),
});

const FileMove = message('file-move', {
  source: filePath(1),
  target: filePath(2),
  user: user(3),
  replace: bool(4),
  trace: trace(5),
});

const FileRemove = message('file-remove', {
  path: filePath(1),
  user: user(2),
  recursive: bool(3),
  trace: trace(4),
});

export const FILE_KINDS = [
  'file',
  'directory',
  'symlink',
  'char',
  'block',
  'fifo',
  'socket',
] as const;
export type FileKind = (typeof FILE_KINDS)[number];

const FileAttributes = message('file-attributes', {
  /** The last part of the path asked for, or the name in a listing. */
  name: path(1, { bytesMax: NAME_BYTES_MAX }),
  kind: choice(2, FILE_KINDS),
  mode: mode(3),
  uid: u32(4),
  gid: u32(5),
  sizeBytes: u64(6),
  allocatedBytes: u64(7),
  links: u32(8),
  /** Since the Unix epoch, possibly before it; `mtimeNanoseconds` is added. */
  mtimeSeconds: i64(9),
  mtimeNanoseconds: u32(10, { maximum: 999_999_999 }),
  symlinkTarget: optional(path(11, { bytesMin: 1, bytesMax: PATH_BYTES_MAX })),
});

const FileEntries = message('file-entries', {
  entries: listOf(1, FileAttributes, { itemsMax: 1024, bytesMax: LIST_PAGE_BYTES_MAX }),
  /** Absent: this was the last page. */
  cursor: optional(bytes(2, { bytesMin: 1, bytesMax: NAME_BYTES_MAX + 9 })),
});

/** Connects to the port on the sandbox's own loopback, never elsewhere. */
const PortOpen = message('port-open', {
  port: u16(1, { minimum: 1 }),
  rawToken: rawToken(2),
  trace: trace(3),
});

/** The request has succeeded. */
const Done = message('done', {
  /** Bytes that went through the stream, for reads, writes and ports. */
  bytes: optional(u64(1)),
});

export const AETHER_FRAMES = defineFrameProtocol('aether', {
  hello: control(0x01, 'client', 'connection', Hello),
  welcome: control(0x02, 'server', 'connection', Welcome),
  ping: control(0x03, 'both', 'connection', Empty),
  /** Repeats the offset of the ping. */
  pong: control(0x04, 'both', 'connection', Empty),
  /** On stream 0: the sender closes the connection. */
  error: control(0x05, 'both', 'any', ErrorFields),
  reseed: control(0x06, 'client', 'connection', Reseed),
  reseeded: control(0x07, 'server', 'connection', Empty),

  'exec-start': control(0x10, 'client', 'stream', ExecStart),
  'exec-attach': control(0x11, 'client', 'stream', ExecAttach),
  'exec-started': control(0x12, 'server', 'stream', ExecStarted),
  'exec-exit': control(0x13, 'server', 'stream', ExecExit),
  'exec-exit-ack': control(0x14, 'client', 'stream', ExecExitAck),
  resize: control(0x15, 'client', 'stream', PtySize),
  signal: control(0x16, 'client', 'stream', Signal),
  timeout: control(0x17, 'client', 'stream', Timeout),
  /** Gives up a file or port request; a command goes on, only its stream is detached. */
  cancel: control(0x18, 'client', 'stream', Empty),
  'session-open': control(0x19, 'client', 'stream', SessionOpen),
  'session-close': control(0x1a, 'client', 'stream', SessionClose),
  'session-watch': control(0x1b, 'client', 'stream', SessionWatch),

  'session-rules': control(0x1c, 'client', 'stream', SessionRules),
  /**
   * Ends every process but the agent, and starts none until `session-rules` comes: `unavailable` until then.
   * `done` when none is left.
   */
  quiesce: control(0x1d, 'client', 'stream', Empty),

  stdin: data(0x20, 'client'),
  stdout: data(0x21, 'server'),
  stderr: data(0x22, 'server'),
  ack: control(0x23, 'both', 'stream', ChannelOf),
  credit: control(0x24, 'both', 'stream', ChannelOf),

  'file-read': control(0x30, 'client', 'stream', FileRead),
  'file-write': control(0x31, 'client', 'stream', FileWrite),
  'file-stat': control(0x32, 'client', 'stream', FileStat),
  'file-list': control(0x33, 'client', 'stream', FileList),
  'file-mkdir': control(0x34, 'client', 'stream', FileMkdir),
  'file-move': control(0x35, 'client', 'stream', FileMove),
  'file-remove': control(0x36, 'client', 'stream', FileRemove),
  'file-attributes': control(0x38, 'server', 'stream', FileAttributes),
  'file-entries': control(0x39, 'server', 'stream', FileEntries),
  'port-open': control(0x40, 'client', 'stream', PortOpen),
  done: control(0x4f, 'server', 'stream', Done),
});

export type AetherFrame = FrameOf<typeof AETHER_FRAMES>;
export type ExecStartFields = MessageValue<typeof ExecStart>;
export type SessionRulesFields = MessageValue<typeof SessionRules>;
export type ExecExitFields = MessageValue<typeof ExecExit>;
export type FileAttributesFields = MessageValue<typeof FileAttributes>;
