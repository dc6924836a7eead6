import { once } from 'node:events';
import type { Duplex } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  AETHER_FRAMES,
  type AetherFrame,
  createFrameDecoder,
  encodeFrame,
  FRAME_DATA_BYTES_MAX,
  FRAME_HEADER_BYTES,
  FRAME_VERSION,
} from '@dsec/protocol';
import { KIB, type Random } from '@dsec/std';
import { SIM_AGENT_VERSION } from './agent.ts';
import type { Outgoing } from './agent-link.ts';

/**
 * An agent that has been taken over (THREATS C11, row 74). It says hello as it should and shows its face at
 * the first request, except where the hello itself is the attack.
 */
export const HOSTILE_MODES = [
  /** Headers that announce more than any payload may have. */
  'bad-lengths',
  'unknown-types',
  /** Any bytes at all. */
  'noise',
  /** A welcome with another nonce, again and again. */
  'wrong-welcome',
  /** Output far beyond what was granted. */
  'credit-overrun',
  /** Output at offsets that leave gaps, and overlap. */
  'wrong-offsets',
  /** Answers on streams that nobody opened, and on those that have ended. */
  'stream-reuse',
  /** The same on a million numbers. */
  'many-streams',
  /** Output in frames of one byte, as fast as they are taken. */
  'tiny-frames',
  /** Thousands of control frames on a stream. */
  'control-flood',
  /** Exits that contradict each other. */
  'many-exits',
  /** Takes nothing from the connection. */
  'never-reads',
  /** Closes at once, in the middle of a frame. */
  'early-close',
] as const;

export type HostileMode = (typeof HOSTILE_MODES)[number];

interface Attack {
  readonly duplex: Duplex;
  readonly random: Random;
  readonly epoch: number;
  /** The stream of the first request, and the id of its command. */
  readonly stream: number;
  readonly execId: string;
}

const TINY_FRAMES = 200_000;
const STREAMS = 2 ** 20;
const FLOOD_FRAMES = 5000;
const FRAMES_PER_TURN = 64;

/** Serves one connection in the worst way of its kind. */
export function serveHostile(duplex: Duplex, mode: HostileMode, random: Random): void {
  const decoder = createFrameDecoder(AETHER_FRAMES, { from: 'client' });
  let isAttacking = false;
  const framesIn = (chunk: Buffer) => {
    try {
      return decoder.push(chunk);
    } catch {
      // A raw stream: its bytes are taken, and nothing ever comes of them.
      isAttacking = true;
      return [];
    }
  };
  duplex.on('error', () => {});
  duplex.on('data', (chunk: Buffer) => {
    if (isAttacking) return;
    for (const frame of framesIn(chunk)) {
      if (frame.type === 'hello') {
        greet(duplex, mode, random, frame);
      } else if (frame.stream !== 0 && !isAttacking) {
        isAttacking = true;
        if (mode === 'never-reads') duplex.pause();
        const execId = frame.type === 'exec-start' ? frame.fields.execId : 'none';
        const { stream, epoch } = frame;
        const attack = { duplex, random, epoch, stream, execId };
        // The connection is closed on it, sooner or later: that is what it is for.
        ATTACKS[mode](attack).catch(() => duplex.destroy());
      }
    }
  });
}

type Hello = Extract<AetherFrame, { type: 'hello' }>;

function greet(duplex: Duplex, mode: HostileMode, random: Random, hello: Hello): void {
  const { epoch, fields } = hello;
  const welcome = (nonce: Uint8Array): Uint8Array =>
    encodeFrame(AETHER_FRAMES, {
      type: 'welcome',
      stream: 0,
      epoch,
      offset: 0,
      fields: { nonce, version: 1, agentVersion: SIM_AGENT_VERSION, instance: random.bytes(16) },
    });
  const isWrong = mode === 'wrong-welcome';
  for (let time = isWrong ? 1000 : 1; time > 0; time -= 1) {
    duplex.write(welcome(isWrong ? random.bytes(16) : fields.nonce));
  }
}

const ATTACKS: Readonly<Record<HostileMode, (attack: Attack) => Promise<void>>> = {
  'bad-lengths': (attack) => write(attack, header({ length: 2 ** 31, code: 0x21 })),
  'unknown-types': (attack) => write(attack, header({ length: 0, code: 0x7e })),
  noise: (attack) => write(attack, attack.random.bytes(64 * KIB)),
  'wrong-welcome': async () => {},
  async 'credit-overrun'(attack) {
    await send(attack, started());
    const data = new Uint8Array(FRAME_DATA_BYTES_MAX);
    for (let offset = 0; offset < 64 * data.length; offset += data.length) {
      await send(attack, { type: 'stdout', offset, data, end: false });
    }
  },
  async 'wrong-offsets'(attack) {
    await send(attack, started());
    const data = new Uint8Array(100);
    for (const offset of [0, 50, 4000, 2 ** 52]) {
      await send(attack, { type: 'stdout', offset, data, end: false });
    }
  },
  async 'stream-reuse'(attack) {
    await send(attack, { type: 'done', fields: {} });
    await send(attack, { type: 'done', fields: {} });
    await send({ ...attack, stream: attack.stream + 1000 }, started());
  },
  async 'many-streams'(attack) {
    await repeat(STREAMS, (stream) =>
      send({ ...attack, stream: stream + 1 }, { type: 'done', fields: {} }),
    );
  },
  async 'tiny-frames'(attack) {
    await send(attack, started());
    const data = new Uint8Array(1);
    await repeat(TINY_FRAMES, (offset) =>
      send(attack, { type: 'stdout', offset, data, end: false }),
    );
  },
  'control-flood': (attack) => repeat(FLOOD_FRAMES, () => send(attack, started())),
  async 'many-exits'(attack) {
    await send(attack, started());
    for (const exitCode of [0, 1, 2]) await send(attack, exited(attack.execId, exitCode));
  },
  'never-reads': (attack) => send(attack, started()),
  async 'early-close'(attack) {
    await write(attack, header({ length: 1000, code: 0x21, stream: attack.stream }));
    attack.duplex.destroy();
  },
};

/** A peer is another process: it cannot keep this one from its turns. */
async function repeat(times: number, step: (round: number) => Promise<void>): Promise<void> {
  for (let round = 0; round < times; round += 1) {
    if (round % FRAMES_PER_TURN === 0) await nextTurn();
    await step(round);
  }
}

function started(): Outgoing {
  return {
    type: 'exec-started',
    fields: { attached: false, stdinOffset: 0, stdinCredit: 64 * KIB },
  };
}

function exited(execId: string, exitCode: number): Outgoing {
  const counts = { stdoutBytes: 0, stderrBytes: 0, runningMs: 0, cpuUserUs: 0, cpuSystemUs: 0 };
  const flags = { coreDumped: false, timedOut: false, trusted: true };
  const fields = { execId, exitCode, ...flags, ...counts, memoryPeakBytes: 0 };
  return { type: 'exec-exit', fields };
}

function send({ duplex, epoch, stream }: Attack, frame: Outgoing): Promise<void> {
  const whole = { offset: 0, ...frame, epoch, stream } as AetherFrame;
  return writeBytes(duplex, encodeFrame(AETHER_FRAMES, whole));
}

const write = ({ duplex }: Attack, bytes: Uint8Array) => writeBytes(duplex, bytes);

/** As fast as the other side takes it. Rejects when it closes. */
async function writeBytes(duplex: Duplex, bytes: Uint8Array): Promise<void> {
  if (duplex.destroyed) throw new Error('the host has closed');
  if (duplex.write(bytes)) return;
  const closed = new AbortController();
  const onClose = () => closed.abort();
  duplex.once('close', onClose);
  try {
    await once(duplex, 'drain', { signal: closed.signal });
  } finally {
    duplex.off('close', onClose);
  }
}

function header(of: { length: number; code: number; stream?: number }): Uint8Array {
  const bytes = Buffer.alloc(FRAME_HEADER_BYTES);
  bytes.writeUInt32LE(of.length, 0);
  bytes.writeUInt8(FRAME_VERSION, 4);
  bytes.writeUInt8(of.code, 5);
  bytes.writeUInt32LE(of.stream ?? 1, 8);
  return bytes;
}
