import { createHash, type Hash } from 'node:crypto';
import { type ExecExitFields, type ExecStartFields, WINDOW_BYTES_MIN } from '@dsec/protocol';
import { newExecId } from '@dsec/std';
import type { AgentLink, AgentStream } from '../agent/index.ts';

export interface RunOptions {
  /** Standard input, which then ends. Absent: at its end from the start. */
  readonly input?: Uint8Array;
  readonly windowBytes?: number;
  readonly cwd?: string | Uint8Array;
  readonly user?: string;
  readonly env?: readonly string[];
  readonly pty?: { readonly rows: number; readonly columns: number };
  readonly timeoutMs?: number;
  readonly shell?: string;
  readonly sessionId?: string;
  readonly execId?: string;
}

export interface RunResult extends ExecExitFields {
  readonly stdout: Output;
  readonly stderr: Output;
}

/** Text is kept up to a megabyte; all is counted and hashed. */
export interface Output {
  readonly bytes: number;
  readonly sha256: string;
  readonly text: string;
}

const KEPT_BYTES_MAX = 1024 * 1024;

/** Words, as text or as the bytes that they are. */
type Words = readonly (string | Uint8Array)[];

export function execFields(argv: Words, options: RunOptions = {}): ExecStartFields {
  const { cwd, user, env = [], pty, timeoutMs, shell, sessionId } = options;
  return {
    execId: options.execId ?? newExecId(),
    ...(shell === undefined ? { argv: argv.map(encode) } : { shell: encode(shell) }),
    ...(cwd !== undefined && { cwd: encode(cwd) }),
    ...(user !== undefined && { user }),
    ...(pty !== undefined && { pty }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(sessionId !== undefined && { sessionId }),
    env: env.map(encode),
    stdinOpen: options.input !== undefined,
    windowBytes: options.windowBytes ?? 4 * WINDOW_BYTES_MIN,
  };
}

const encode = (text: string | Uint8Array): Uint8Array => Buffer.from(text);

/** Runs a command to its end and acknowledges its result. */
export async function run(
  link: AgentLink,
  argv: Words,
  options: RunOptions = {},
): Promise<RunResult> {
  const fields = execFields(argv, options);
  const follower = createFollower(fields);
  const stream = follower.open(link);
  try {
    await stream.send('exec-start', fields);
    return await follower.toEnd(stream, options.input);
  } finally {
    await stream.send('exec-exit-ack', { execId: fields.execId }).catch(() => {});
    stream.leave();
  }
}

/** Takes the output of a command, over as many connections as it needs. */
export interface Follower {
  /** A stream that goes on where the last one was left. */
  open(link: AgentLink): AgentStream;
  /** Reads until the exit; the result is not acknowledged yet. */
  toEnd(stream: AgentStream, input?: Uint8Array): Promise<RunResult>;
  /** Asks for a command that runs already and reads it to its end. */
  attach(link: AgentLink): Promise<RunResult>;
  readonly offsets: { readonly stdout: number; readonly stderr: number };
  /** What has come so far. */
  readonly text: string;
}

interface Gathered {
  readonly hash: Hash;
  parts: Buffer[];
  bytes: number;
}

export function createFollower(fields: Pick<ExecStartFields, 'execId' | 'windowBytes'>): Follower {
  const outputs = { stdout: gather(), stderr: gather() };
  const offsets = () => ({ stdout: outputs.stdout.bytes, stderr: outputs.stderr.bytes });
  const follower: Follower = {
    open: (link) =>
      link.open({ acknowledge: true, windowBytes: fields.windowBytes, offsets: offsets() }),
    async toEnd(stream, input) {
      let feeding: Promise<void> | undefined;
      for (;;) {
        const frame = await stream.receive();
        if (frame.type === 'exec-started' && input !== undefined) {
          stream.openInput(frame.fields.stdinOffset, frame.fields.stdinCredit);
          feeding = feed(stream, input.subarray(frame.fields.stdinOffset));
        } else if (frame.type === 'stdout' || frame.type === 'stderr') {
          add(outputs[frame.type], frame.offset, frame.data);
        } else if (frame.type === 'exec-exit') {
          stream.leave();
          await feeding;
          const { stdout, stderr } = outputs;
          return { ...frame.fields, stdout: outputOf(stdout), stderr: outputOf(stderr) };
        }
      }
    },
    async attach(link) {
      const stream = follower.open(link);
      try {
        const { stdout, stderr } = offsets();
        const { execId } = fields;
        await stream.send('exec-attach', { execId, stdoutOffset: stdout, stderrOffset: stderr });
        return await follower.toEnd(stream);
      } finally {
        stream.leave();
      }
    },
    get offsets() {
      return offsets();
    },
    get text() {
      return Buffer.concat(outputs.stdout.parts).toString();
    },
  };
  return follower;
}

/** A command that ends without reading its input ends the feeding too. */
async function feed(stream: AgentStream, input: Uint8Array): Promise<void> {
  try {
    await stream.write(input);
    await stream.endInput();
  } catch {
    return;
  }
}

function gather(): Gathered {
  return { hash: createHash('sha256'), parts: [], bytes: 0 };
}

/** Bytes at their place, also where the connection is another one. */
function add(output: Gathered, offset: number, data: Uint8Array): void {
  if (offset !== output.bytes) throw new Error(`bytes at ${offset}, expected ${output.bytes}`);
  output.hash.update(data);
  if (output.bytes < KEPT_BYTES_MAX) output.parts.push(Buffer.from(data));
  output.bytes += data.byteLength;
}

function outputOf({ hash, parts, bytes }: Gathered): Output {
  return {
    bytes,
    sha256: hash.copy().digest('hex'),
    text: Buffer.concat(parts).toString('latin1'),
  };
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
