import { type Exec, type ExecSpec, ROUTES } from '@dsec/protocol';
import { type Asked, askedOfExec } from './asked.ts';
import { type FollowOptions, followCommand, type OutputChunk } from './attachment.ts';
import { bytesOf } from './byte-input.ts';
import { type DsecError, StateConflictError } from './errors.ts';
import type { ExecResult } from './exec-result.ts';
import { type ExecPlace, type OutputName, readOutput, resultOf } from './output.ts';
import { startWait } from './patience.ts';
import { failureOf, hasEnded, RESULT_BYTES_MAX, ran, waitForEnd } from './run-command.ts';
import type { CallSettings, Server } from './server.ts';
import { createStdin, type Stdin } from './stdin.ts';

/** A command in the background. It runs on when nobody looks. */
export class Command {
  readonly #server: Server;
  readonly #place: ExecPlace;
  readonly #stdin: Stdin;
  readonly #asked: Asked | undefined;
  #info: Exec;

  /** As `Sandbox.start`, `command` and `commands` make it. */
  constructor(server: Server, info: Exec, stdinOffset?: number, asked?: Asked) {
    this.#server = server;
    this.#asked = asked;
    this.#info = info;
    this.#place = { sandboxId: info.sandbox, execId: info.id };
    this.#stdin = createStdin(server, this.#place, stdinOffset);
  }

  get id(): string {
    return this.#info.id;
  }

  /** As it was when last heard of: see `refresh`. */
  get info(): Exec {
    return this.#info;
  }

  /** Why it never ran, or nobody knows how it ended: what `wait` throws. As `info`, of that moment. */
  get error(): DsecError | undefined {
    return hasEnded(this.#info) ? failureOf(this.#info, this.#asked) : undefined;
  }

  async refresh(options: CallSettings = {}): Promise<this> {
    const input = { params: this.#place, query: {} };
    this.#info = await this.#server.call(ROUTES.getExec, input, options);
    return this;
  }

  /**
   * Everything that it writes, from the beginning or from offsets on, until it has ended; as often as wanted
   * and from anywhere. Lost connections are made anew, and memory does not grow with the output. Leaving
   * the loop leaves the command running. Throws `output-lost` where output is no longer kept.
   */
  stream(options: FollowOptions = {}): AsyncGenerator<OutputChunk> {
    return followCommand(this.#server, this.#place, options, (exec) => {
      this.#info = exec;
    });
  }

  /** The bytes of one output, from an offset on, until it ends. */
  output(
    options: { stream?: OutputName; offset?: number; signal?: AbortSignal } = {},
  ): AsyncGenerator<Uint8Array> {
    const { stream = 'stdout', offset = 0, signal } = options;
    return readOutput(this.#server, this.#place, { stream, offset }, signal);
  }

  /**
   * Waits for its end, `timeout` seconds at most (then `Timeout`, and it runs on), and fetches what it wrote,
   * at most `maxOutputBytes` of each output (64 MiB; who has streamed it may say 0).
   */
  async wait(
    options: { timeout?: number; maxOutputBytes?: number; signal?: AbortSignal } = {},
  ): Promise<ExecResult> {
    const { timeout, maxOutputBytes = RESULT_BYTES_MAX, signal } = options;
    const wait = startWait(timeout, `the command ${this.id} has not ended`);
    this.#info = await waitForEnd(this.#server, this.#place, undefined, wait, signal);
    return resultOf(
      this.#server,
      this.#place,
      ran(this.#info, this.#asked),
      {},
      maxOutputBytes,
      signal,
    );
  }

  /** Resolves when the sandbox has taken the bytes. Throws `state-conflict` when the command has ended. */
  write(data: Uint8Array | string, options: CallSettings = {}): Promise<void> {
    return this.#stdin.write(bytesOf(data), options);
  }

  /** Says that no more input comes. Does nothing when it has ended. */
  closeStdin(options: CallSettings = {}): Promise<void> {
    return this.#stdin.end(options);
  }

  /** Sends a signal to every process that it has left, or with `leader` to the first one alone. */
  async signal(
    signal: number,
    options: { scope?: 'tree' | 'leader'; signal?: AbortSignal } = {},
  ): Promise<void> {
    const { scope = 'tree', signal: abort } = options;
    const input = { params: this.#place, body: { signal, scope } };
    await this.#server.call(ROUTES.signalExec, input, { signal: abort });
  }

  /** SIGKILL for every process that it has left. Does nothing when it has ended. */
  async kill(options: { signal?: AbortSignal } = {}): Promise<void> {
    try {
      await this.signal(9, { ...options, scope: 'tree' });
    } catch (thrown) {
      if (!(thrown instanceof StateConflictError)) throw thrown;
      await this.refresh(options);
      if (!hasEnded(this.#info)) throw thrown;
    }
  }

  /** Sets the size of its terminal. */
  async resize(rows: number, columns: number, options: CallSettings = {}): Promise<void> {
    const input = { params: this.#place, body: { rows, columns } };
    await this.#server.call(ROUTES.resizeExec, input, options);
  }

  /** Limits its running time, counted from its start; absent: no longer. */
  async setTimeout(timeoutMs?: number, options: CallSettings = {}): Promise<void> {
    const body = timeoutMs === undefined ? {} : { timeoutMs };
    await this.#server.call(ROUTES.setExecTimeout, { params: this.#place, body }, options);
  }
}

export async function startCommand(
  server: Server,
  sandboxId: string,
  spec: ExecSpec,
  signal: AbortSignal | undefined,
): Promise<Command> {
  const input = { params: { sandboxId }, body: spec };
  const { exec } = await server.call(ROUTES.startExec, input, { signal });
  return new Command(server, exec, 0, askedOfExec(spec, exec));
}
