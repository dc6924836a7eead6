import { ROUTES, type Session as SessionInfo } from '@dsec/protocol';
import { bytesOf } from './byte-input.ts';
import { type Command, startCommand } from './command.ts';
import { NotFoundError, StateConflictError } from './errors.ts';
import { execSpecOf, type SessionExecOptions, type SessionStartOptions } from './exec-options.ts';
import type { ExecResult } from './exec-result.ts';
import { runCommand } from './run-command.ts';
import type { CallSettings, Server } from './server.ts';

export interface SessionOptions extends CallSettings {
  /** The shell and its arguments; absent: `/bin/sh`. */
  readonly shell?: readonly string[] | undefined;
  readonly cwd?: string | undefined;
  readonly env?: Readonly<Record<string, string>> | undefined;
  readonly user?: string | undefined;
}

/**
 * A shell that keeps its directory and variables from one command to the next; one runs at a time. What it
 * says of exit codes is the sandbox's own word. Leaving its context (`await using`) closes it.
 */
export class Session {
  readonly #server: Server;
  readonly info: SessionInfo;

  constructor(server: Server, info: SessionInfo) {
    this.#server = server;
    this.info = info;
  }

  get id(): string {
    return this.info.id;
  }

  /** Runs shell text to its end. */
  exec(text: string, options: SessionExecOptions = {}): Promise<ExecResult> {
    const { stdin, check, signal } = options;
    const spec = execSpecOf(text, options, this.id);
    const run = { check, signal, stdin: stdin === undefined ? undefined : bytesOf(stdin) };
    return runCommand(this.#server, this.info.sandbox, spec, run);
  }

  /** Starts shell text in the background. */
  start(text: string, options: SessionStartOptions = {}): Promise<Command> {
    const { stdin, signal } = options;
    const spec = { ...execSpecOf(text, options, this.id), ...(stdin ? { stdin } : {}) };
    return startCommand(this.#server, this.info.sandbox, spec, signal);
  }

  /** Ends the shell and every process that it has left. */
  async close(options: CallSettings = {}): Promise<void> {
    const params = { sandboxId: this.info.sandbox, sessionId: this.id };
    await this.#server.call(ROUTES.closeSession, { params }, options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.close();
    } catch (thrown) {
      // It has ended with its shell, or with its sandbox.
      const hasEnded = thrown instanceof NotFoundError || thrown instanceof StateConflictError;
      if (!hasEnded) throw thrown;
    }
  }
}
