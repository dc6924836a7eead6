import {
  type DsecError,
  escapeForTerminal,
  formatBytes,
  SECOND_MS,
  systemClock,
  toErrorBody,
} from '@dsec/std';
import { SingleBar } from 'cli-progress';
import Table from 'cli-table3';

/** Prints a value for programs: one JSON document on one line. */
export function printJson(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

/** Plain lines for people, each escaped for the terminal. */
export function printLines(lines: readonly string[]): void {
  for (const line of lines) process.stdout.write(`${escapeForTerminal(line)}\n`);
}

/** A table for people: a heading unless it is empty, then rows. Every cell is escaped for the terminal. */
export function renderTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const table = new Table({
    head: [...head],
    style: { head: [], border: [], compact: true, 'padding-left': 0, 'padding-right': 2 },
    chars: NO_BORDER,
  });
  for (const row of rows) table.push(row.map(escapeForTerminal));
  return table
    .toString()
    .split('\n')
    .map((line) => line.trim())
    .join('\n');
}

const NO_BORDER = {
  top: '',
  'top-mid': '',
  'top-left': '',
  'top-right': '',
  bottom: '',
  'bottom-mid': '',
  'bottom-left': '',
  'bottom-right': '',
  left: '',
  'left-mid': '',
  mid: '',
  'mid-mid': '',
  right: '',
  'right-mid': '',
  middle: '',
};

/**
 * Writes an error for people on stderr: code, message, what to do. Or, with `json`, its wire form
 * on stdout. `hint` takes the place of what the table of errors says to do.
 */
export function printError(error: DsecError, json: boolean, hint = error.remedy): void {
  if (json) {
    printJson({ error: toErrorBody(error) });
    return;
  }
  process.stderr.write(`dsec: ${error.code}: ${escapeForTerminal(error.message)}\n`);
  process.stderr.write(`      ${hint}\n`);
}

/** One line for people on stderr about something that did not stop the command. */
export function printWarning(text: string): void {
  process.stderr.write(`dsec: ${escapeForTerminal(text)}\n`);
}

/** Longer than anything takes that does not wait for something. */
const PATIENT_MS = 2 * SECOND_MS;

/** Says on standard error what takes so long, once, if it does. */
export async function sayIfSlow<T>(work: Promise<T>, text: string): Promise<T> {
  const timer = setTimeout(() => printWarning(text), PATIENT_MS);
  try {
    return await work;
  } finally {
    clearTimeout(timer);
  }
}

export interface ByteProgress {
  /** `doneBytes` so far; `totalBytes` where it is known. */
  update(doneBytes: number, totalBytes: number | undefined, note: string): void;
  finish(): void;
}

/** A progress bar on a terminal's stderr; elsewhere nothing, so that logs stay clean. */
export function createByteProgress(label: string): ByteProgress {
  if (!process.stderr.isTTY) return { update: () => undefined, finish: () => undefined };
  const bar = new SingleBar({
    format: `${label} [{bar}] {done} {note}`,
    stream: process.stderr,
    hideCursor: true,
    clearOnComplete: true,
  });
  bar.start(1, 0, { done: '', note: '' });
  return {
    update(doneBytes, totalBytes, note) {
      const known = totalBytes !== undefined && totalBytes > 0;
      bar.setTotal(known ? totalBytes : doneBytes + 1);
      const done = known
        ? `${formatBytes(doneBytes)} of ${formatBytes(totalBytes)}`
        : formatBytes(doneBytes);
      bar.update(doneBytes, { done, note: escapeForTerminal(note) });
    },
    finish: () => bar.stop(),
  };
}

export interface CountProgress {
  /** One more is done; so many of all have failed. */
  advance(failed: number): void;
  /** Writes lines without the bar in between. */
  interrupt(write: () => void): void;
  finish(): void;
}

/** The same for a number of things. */
export function createCountProgress(label: string, total: number): CountProgress {
  if (!process.stderr.isTTY) {
    return { advance: () => undefined, interrupt: (write) => write(), finish: () => undefined };
  }
  const bar = new SingleBar({
    format: `${label} [{bar}] {value} of {total} {note}`,
    stream: process.stderr,
    hideCursor: true,
    clearOnComplete: true,
  });
  bar.start(total, 0, { note: '' });
  return {
    advance: (failed) => bar.increment(1, { note: failed === 0 ? '' : `${failed} failed` }),
    interrupt(write) {
      process.stderr.write('\r\u001b[K');
      write();
      bar.render();
    },
    finish: () => bar.stop(),
  };
}

const goneSteps = new Set<() => Promise<unknown>>();
const GONE_MS_MAX = 3000;

/** What is to be done before we end because nobody reads our output any more; returns how to forget it. */
export function onReaderGone(step: () => Promise<unknown>): () => void {
  goneSteps.add(step);
  return () => void goneSteps.delete(step);
}

/** Does it, within a few seconds. */
export async function settleReaderGone(): Promise<void> {
  const steps = [...goneSteps].map((step) => step().catch(() => undefined));
  goneSteps.clear();
  const late = systemClock.sleep(GONE_MS_MAX);
  await Promise.race([Promise.all(steps), late]);
}
