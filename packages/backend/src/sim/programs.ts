import { createSeededRandom, KIB, MIB } from '@dsec/std';
import { SIGTERM } from './processes.ts';
import type { ProgramTable, SimProgram } from './program.ts';

const OUTPUT_PIECE_BYTES = 64 * KIB;

const encode = (text: string): Uint8Array => Buffer.from(text, 'latin1');

/** Prints its arguments as a shell's `echo` does. */
const echo: SimProgram = async (io) => {
  await io.stdout.write(encode(`${io.args.join(' ')}\n`));
  return 0;
};

const cat: SimProgram = async (io) => {
  for (let bytes = await io.stdin(); bytes !== undefined; bytes = await io.stdin()) {
    await io.stdout.write(bytes);
  }
  return 0;
};

/** `count N`: the numbers from 1 to N, a line each. */
const count: SimProgram = async (io) => {
  const last = Number(io.args[0]);
  let text = '';
  for (let number = 1; number <= last; number += 1) {
    text += `${number}\n`;
    if (text.length < OUTPUT_PIECE_BYTES && number < last) continue;
    await io.stdout.write(encode(text));
    text = '';
  }
  return 0;
};

/** `yes N`: so many bytes of `x`, no newline among them. */
const yes: SimProgram = async (io) => {
  const piece = Buffer.alloc(OUTPUT_PIECE_BYTES, 'x');
  for (let left = Number(io.args[0]); left > 0; left -= piece.length) {
    await io.stdout.write(piece.subarray(0, Math.min(left, piece.length)));
  }
  return 0;
};

/** `random SEED N`: so many bytes of any value, the same for the same seed. */
const random: SimProgram = async (io) => {
  const source = createSeededRandom(Number(io.args[0]));
  for (let left = Number(io.args[1]); left > 0; left -= OUTPUT_PIECE_BYTES) {
    await io.stdout.write(source.bytes(Math.min(left, OUTPUT_PIECE_BYTES)));
  }
  return 0;
};

/** `spawn-background CODE`: prints `early` and ends, while a child holds its outputs for an hour. */
const spawnBackground: SimProgram = async (io) => {
  io.spawn(['sleep', '3600000']);
  await io.stdout.write(encode('early\n'));
  return Number(io.args[0] ?? 0);
};

/** `tree DEPTH MS`: a chain of processes; none ends before that time, and none heeds what asks it to. */
const tree: SimProgram = async (io) => {
  const depth = Number(io.args[0]);
  for (const number of [1, 2, 3, SIGTERM]) io.system.onSignal(number, undefined);
  if (depth > 0) io.spawn(['tree', String(depth - 1), io.args[1] ?? '']);
  else await io.stdout.write(encode('grown\n'));
  await io.system.sleep(Number(io.args[1]));
  return 0;
};

/** Takes memory until it is killed. */
const oom: SimProgram = async (io) => {
  for (;;) await io.system.allocate(MIB);
};

/** `many-files DIRECTORY N`: empty files `name-0` and so on. */
const manyFiles: SimProgram = async (io) => {
  const [directory = '/', files = '0'] = io.args;
  for (let number = 0; number < Number(files); number += 1) {
    io.files.write(`${directory}/name-${number}`, new Uint8Array(0));
  }
  return 0;
};

/** `size`: prints the terminal's rows and columns, and again at each change of them. */
const size: SimProgram = async (io) => {
  const { terminal } = io;
  if (terminal === undefined) return 1;
  let changed = () => {};
  io.system.onSignal(28, () => changed());
  for (;;) {
    const change = new Promise<void>((resolve) => {
      changed = resolve;
    });
    await io.stdout.write(encode(`${terminal.rows} ${terminal.columns}\r\n`));
    await io.system.wait(change);
  }
};

export const SIM_PROGRAMS: ProgramTable = {
  true: async () => 0,
  false: async () => 1,
  exit: async (io) => Number(io.args[0]),
  echo,
  cat,
  count,
  yes,
  random,
  tree,
  oom,
  size,
  'spawn-background': spawnBackground,
  'many-files': manyFiles,
  sleep: async (io) => {
    await io.system.sleep(Number(io.args[0]));
    return 0;
  },
  'kill-self': async (io) => {
    await io.system.raise(Number(io.args[0]));
    await io.system.sleep(60_000);
    return 0;
  },
  stderr: async (io) => {
    await io.stderr.write(encode(`${io.args.join(' ')}\n`));
    return 0;
  },
  env: async (io) => {
    const lines = [...io.env].map(([name, value]) => `${name}=${value}\n`);
    await io.stdout.write(encode(lines.join('')));
    return 0;
  },
  pwd: async (io) => {
    await io.stdout.write(encode(`${io.cwd}\n`));
    return 0;
  },
};
