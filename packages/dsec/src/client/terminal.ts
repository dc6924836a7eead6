/** The terminal that we were started on, where there is one. */
import { stopOutputProcessing } from '@dsec/linux';
import type { PtySize } from '@dsec/protocol';
import { DsecError } from '@dsec/std';

const SIZE_DEFAULT = { rows: 24, columns: 80 };

/** Throws `invalid-argument` when a command needs a terminal and there is none. */
export function requireTerminal(instead: string): void {
  if (process.stdin.isTTY && process.stdout.isTTY) return;
  throw new DsecError('invalid-argument', `this needs a terminal on both sides; ${instead}`);
}

export function terminalSize(): PtySize {
  const { rows, columns } = process.stdout;
  return { rows: rows || SIZE_DEFAULT.rows, columns: columns || SIZE_DEFAULT.columns };
}

/**
 * Every key goes to the command, Ctrl-C too, and every byte that it writes to the terminal, until the
 * function that comes back is called, or we end.
 */
export function enterRawMode(): () => void {
  let resume = () => {};
  const restore = () => {
    process.removeListener('exit', restore);
    resume();
    resume = () => {};
    if (process.stdin.isTTY) process.stdin.setRawMode(false);
  };
  process.on('exit', restore);
  process.stdin.setRawMode(true);
  resume = stopOutputProcessing(process.stdout.fd);
  return restore;
}

/** Tells of each new size of the terminal, one at a time and the last one surely. */
export function followResizes(tell: (size: PtySize) => Promise<unknown>): () => void {
  let running: Promise<unknown> | undefined;
  let isStale = false;
  const onResize = () => {
    if (running !== undefined) {
      isStale = true;
      return;
    }
    // A size that could not be told is not worth more than the command.
    running = tell(terminalSize())
      .catch(() => undefined)
      .finally(() => {
        running = undefined;
        if (isStale) onResize();
      });
    isStale = false;
  };
  process.stdout.on('resize', onResize);
  return () => void process.stdout.removeListener('resize', onResize);
}

/**
 * Looks for `~.` at the beginning of a line, with which one leaves a command that takes every other key.
 * Everything that is typed passes, but for these two.
 */
export function createEscape(): (typed: Buffer) => {
  readonly pass: Buffer;
  readonly leave: boolean;
} {
  let state: 'line' | 'start' | 'tilde' = 'start';
  return (typed) => {
    const pass: number[] = [];
    for (const byte of typed) {
      if (state === 'start' && byte === TILDE) {
        state = 'tilde';
        continue;
      }
      if (state === 'tilde') {
        if (byte === DOT) return { pass: Buffer.from(pass), leave: true };
        pass.push(TILDE);
        // A second one sends the first.
        if (byte === TILDE) {
          state = 'line';
          continue;
        }
      }
      pass.push(byte);
      state = byte === RETURN || byte === NEWLINE ? 'start' : 'line';
    }
    return { pass: Buffer.from(pass), leave: false };
  };
}

const TILDE = 0x7e;
const DOT = 0x2e;
const RETURN = 0x0d;
const NEWLINE = 0x0a;
