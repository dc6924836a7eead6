import { closeSync, copyFileSync, fstatSync, ftruncateSync, openSync, readSync } from 'node:fs';
import { MIB } from '@dsec/std';

/** A file holds so much; the one before it is kept beside it. */
const LOG_BYTES_MAX = 32 * MIB;
const TAIL_BYTES = 2048;

export interface LogFile {
  readonly path: string;
  readonly fd: number;
  /** Where the file ends now. */
  position(): number;
  /** The last lines that were written after a position. */
  tailFrom(position: number): string;
  /** Makes room when it has become long. Lines written in that moment may be lost. */
  rotate(): void;
  close(): void;
}

/** What a part says, written by itself: its lines come even when nobody supervises it any more. */
export function openLogFile(path: string): LogFile {
  const fd = openSync(path, 'a+', 0o600);
  const position = () => fstatSync(fd).size;
  return {
    ...{ path, fd, position },
    tailFrom(start) {
      const end = position();
      const from = Math.max(start, end - TAIL_BYTES, 0);
      const bytes = Buffer.alloc(Math.max(0, end - from));
      return bytes.toString('utf8', 0, readSync(fd, bytes, 0, bytes.length, from));
    },
    rotate() {
      if (position() < LOG_BYTES_MAX) return;
      copyFileSync(path, `${path}.1`);
      ftruncateSync(fd);
    },
    close: () => closeSync(fd),
  };
}
