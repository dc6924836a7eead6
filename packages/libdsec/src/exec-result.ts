import type { Exec } from '@dsec/protocol';

/** How a command ended, and what it wrote. */
export class ExecResult {
  readonly execId: string;
  /** Absent when a signal ended it. */
  readonly exitCode: number | undefined;
  readonly signal: number | undefined;
  readonly timedOut: boolean;
  readonly oomKilled: boolean;
  /** Of an output there was more than is here: its beginning and its end are. */
  readonly truncated: boolean;
  /** Running time, without the time that the sandbox was paused. */
  readonly durationMs: number;
  readonly stdoutBytes: Uint8Array;
  readonly stderrBytes: Uint8Array;

  constructor(exec: Exec, stdout: OutputBytes, stderr: OutputBytes) {
    this.execId = exec.id;
    this.exitCode = exec.exit?.exitCode;
    this.signal = exec.exit?.signal;
    this.timedOut = exec.exit?.timedOut ?? false;
    this.oomKilled = exec.exit?.oomKilled ?? false;
    this.durationMs = exec.runningMs ?? (exec.endedAtMs ?? exec.startedAtMs) - exec.startedAtMs;
    this.truncated = stdout.truncated || stderr.truncated;
    this.stdoutBytes = stdout.bytes;
    this.stderrBytes = stderr.bytes;
  }

  /** It exited with 0. */
  get ok(): boolean {
    return this.exitCode === 0;
  }

  /** As UTF-8; U+FFFD where it is none. */
  get stdout(): string {
    return textOf(this.stdoutBytes);
  }

  get stderr(): string {
    return textOf(this.stderrBytes);
  }
}

/** What there is of an output. */
export interface OutputBytes {
  readonly bytes: Uint8Array;
  readonly truncated: boolean;
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
}
