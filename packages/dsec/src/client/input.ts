import { fstatSync, statSync } from 'node:fs';
import { PassThrough, pipeline, type Readable } from 'node:stream';
import type { Command } from '@dsec/libdsec';
import { DAY_MS, DsecError, MIB } from '@dsec/std';

/** A command may take its time to read; only its end ends the wait. */
const WRITE_MS = 20 * DAY_MS;

/** Whether there may be anything on our standard input for a command. */
export function hasInput(): boolean {
  const stat = fstatSync(0, { bigint: false });
  if (!stat.isCharacterDevice()) return true;
  return stat.rdev !== statSync('/dev/null').rdev;
}

/** What comes while a piece is on its way goes together in the next one, which may have so much. */
const PIECE_BYTES = MIB;

function gathered(input: Readable): Readable {
  const pieces = new PassThrough({ readableHighWaterMark: PIECE_BYTES });
  // Whoever reads the pieces is told of a failure by them.
  pipeline(input, pieces, () => {});
  return pieces;
}

/**
 * Passes standard input on until it ends or the command does. Nobody waits for it: a command that has
 * ended leaves it where it is.
 */
export function forwardInput(
  command: Command,
  translate: (bytes: Buffer) => Promise<Buffer> | Buffer = (bytes) => bytes,
): { readonly failed: Promise<never>; stop(): void } {
  const over = new AbortController();
  const settings = { signal: over.signal, timeoutMs: WRITE_MS };
  const pump = async () => {
    for await (const bytes of gathered(process.stdin)) {
      await command.write(await translate(bytes as Buffer), settings);
    }
    await command.closeStdin(settings);
  };
  const failed = new Promise<never>((_, reject) => {
    pump().catch((thrown: unknown) => {
      // One that has ended takes no more, and that is not our affair.
      const isOver = over.signal.aborted;
      const hasEnded = thrown instanceof DsecError && thrown.code === 'state-conflict';
      if (!isOver && !hasEnded) reject(thrown);
    });
  });
  failed.catch(() => undefined);
  return {
    failed,
    stop() {
      over.abort();
      process.stdin.destroy();
    },
  };
}
