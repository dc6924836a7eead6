import {
  type GradeReport,
  type NetworkRule,
  ROUTES,
  type Sandbox as SandboxInfo,
  type Stage,
  type Ttl,
} from '@dsec/protocol';
import { SECOND_MS } from '@dsec/std';
import { bytesOf } from './byte-input.ts';
import { Command, startCommand } from './command.ts';
import { Connection } from './connection.ts';
import { type CreateOptions, sandboxSpecOf } from './create-options.ts';
import { NotFoundError, StateConflictError, UnsupportedError } from './errors.ts';
import {
  type CommandLine,
  type ExecOptions,
  execSpecOf,
  type StartOptions,
} from './exec-options.ts';
import type { ExecResult } from './exec-result.ts';
import { Files } from './files.ts';
import { type GradeOptions, gradeSandbox } from './grade.ts';
import { itemsOf, type ListOptions, present } from './pages.ts';
import { startWait } from './patience.ts';
import { runCommand } from './run-command.ts';
import { type CallSettings, createServer, type Server, TIMEOUT_MS } from './server.ts';
import { Session, type SessionOptions } from './session.ts';
import { findServer, type ServerSettings } from './settings.ts';

/** How long one request waits for a change. */
const WAIT_MS = 30 * SECOND_MS;

/** A client, as far as `Sandbox.create` needs one. */
interface SandboxMaker {
  create(options: CreateOptions): Promise<Sandbox>;
}

/**
 * A sandbox. Leaving its context (`await using`) stops it; one that is just forgotten ends by its time to
 * live.
 */
export class Sandbox {
  readonly #server: Server;
  readonly files: Files;
  #info: SandboxInfo;
  /** The connections are its own. */
  #isOnly = false;

  /** As `Client.create`, `createMany`, `get` and `list` make it. */
  constructor(server: Server, info: SandboxInfo) {
    this.#server = server;
    this.#info = info;
    this.files = new Files(server, info.id);
  }

  /** A sandbox with connections of its own, which end with its context; or one of a given client. */
  static async create(
    options: CreateOptions & ServerSettings & { readonly client?: SandboxMaker } = {},
  ): Promise<Sandbox> {
    if (options.client !== undefined) return options.client.create(options);
    const server = createServer({ ...findServer(options), timeoutMs: TIMEOUT_MS });
    try {
      const sandbox = await createSandbox(server, options);
      sandbox.#isOnly = true;
      return sandbox;
    } catch (thrown) {
      await server.close();
      throw thrown;
    }
  }

  get id(): string {
    return this.#info.id;
  }

  get state(): SandboxInfo['state'] {
    return this.#info.state;
  }

  /** As it was when last heard of: see `refresh`. */
  get info(): SandboxInfo {
    return this.#info;
  }

  async refresh(options: CallSettings = {}): Promise<this> {
    const input = { params: { sandboxId: this.id }, query: {} };
    this.#info = await this.#server.call(ROUTES.getSandbox, input, options);
    return this;
  }

  /**
   * Waits until it runs, or until it has ended; `timeout` seconds at most (then `Timeout`). Throws
   * `state-conflict`, or why it failed, when it has ended instead of running.
   */
  async wait(
    options: { state?: 'running' | 'ended'; timeout?: number; signal?: AbortSignal } = {},
  ): Promise<this> {
    const { state = 'running', timeout, signal } = options;
    const wait = startWait(timeout, `the sandbox ${this.id} is not ${state}`);
    await this.refresh({ signal });
    for (;;) {
      const hasEnded = this.state === 'stopped' || this.state === 'failed';
      if (state === 'ended' ? hasEnded : this.state === 'running') return this;
      if (hasEnded) throw endedError(this.#info);
      const waitMs = wait.leftMs(WAIT_MS);
      const query = { afterRevision: this.#info.revision, waitMs };
      const settings = { signal, timeoutMs: this.#server.timeoutMs + waitMs };
      const input = { params: { sandboxId: this.id }, query };
      this.#info = await this.#server.call(ROUTES.getSandbox, input, settings);
    }
  }

  /**
   * Runs a command to its end: text for a shell, or a list of a program and its arguments. An exit code
   * other than 0 is a result, not an error, unless `check` is set (`CommandFailed`). Throws
   * `command-not-found`, `state-conflict`, `agent-lost`.
   */
  exec(command: CommandLine, options: ExecOptions = {}): Promise<ExecResult> {
    const { stdin, check, signal } = options;
    const { stdin: _, ...rest } = options;
    const run = { check, signal, stdin: stdin === undefined ? undefined : bytesOf(stdin) };
    return runCommand(this.#server, this.id, execSpecOf(command, rest), run);
  }

  /** Runs shell text to its end. */
  runShell(text: string, options: ExecOptions = {}): Promise<ExecResult> {
    return this.exec(text, options);
  }

  /** Starts a command in the background. */
  start(command: CommandLine, options: StartOptions = {}): Promise<Command> {
    const { stdin = false, ...rest } = options;
    const spec = { ...execSpecOf(command, rest), ...(stdin ? { stdin } : {}) };
    return startCommand(this.#server, this.id, spec, options.signal);
  }

  /**
   * Grades what it has under the solution paths, in a new sandbox of its environment that it never sees.
   * Needs a key with the scope `grading`. Throws `grade-invalid` where the run is no score.
   */
  grade(options: GradeOptions): Promise<GradeReport> {
    return gradeSandbox(this.#server, this.id, options);
  }

  /** Its commands in the order of their start. */
  async *commands(options: ListOptions = {}): AsyncGenerator<Command> {
    const { signal } = options;
    const params = { sandboxId: this.id };
    const execs = itemsOf(
      options,
      (query) => this.#server.call(ROUTES.listExecs, { params, query }, { signal }),
      (page) => page.execs,
    );
    for await (const exec of execs) yield new Command(this.#server, exec);
  }

  /** A command by its id. */
  async command(execId: string, options: CallSettings = {}): Promise<Command> {
    const input = { params: { sandboxId: this.id, execId }, query: {} };
    return new Command(this.#server, await this.#server.call(ROUTES.getExec, input, options));
  }

  /** Opens a shell that keeps its directory and variables between commands. */
  async session(options: SessionOptions = {}): Promise<Session> {
    const { shell, cwd, env, user } = options;
    const body = present({ shell: shell && [...shell], cwd, env, user });
    const input = { params: { sandboxId: this.id }, body };
    return new Session(this.#server, await this.#server.call(ROUTES.openSession, input, options));
  }

  /** Connects to a port inside, on which a program of the sandbox listens on loopback. */
  async connect(port: number, options: CallSettings = {}): Promise<Connection> {
    const params = { sandboxId: this.id, port };
    return new Connection(await this.#server.connect(ROUTES.connectPort, params, {}, options));
  }

  /** Freezes it and takes its memory back. The next operation resumes it. */
  pause(options: CallSettings = {}): Promise<this> {
    return this.#change('pauseSandbox', options);
  }

  resume(options: CallSettings = {}): Promise<this> {
    return this.#change('resumeSandbox', options);
  }

  /** Ends it and removes everything that it held. */
  stop(options: CallSettings = {}): Promise<this> {
    return this.#change('stopSandbox', options);
  }

  /** Sets what ends it by itself; times count from now. */
  async renew(ttl: Ttl, options: CallSettings = {}): Promise<this> {
    const input = { params: { sandboxId: this.id }, body: ttl };
    this.#info = await this.#server.call(ROUTES.renewSandbox, input, options);
    return this;
  }

  /**
   * Replaces what it may reach; connections that the rules do not open are cut before it resolves. For one
   * that was created with rules; none at all shut everything. `version`: of the rules that are replaced;
   * absent: those of `info`. Throws `conflict` where others are in force.
   */
  async setNetwork(
    rules: readonly NetworkRule[],
    options: CallSettings & { readonly version?: number } = {},
  ): Promise<this> {
    const { version = this.#info.network?.version, ...settings } = options;
    if (version === undefined) {
      throw new UnsupportedError(
        'unsupported',
        'the sandbox has no network: rules can be changed where it was created with some',
        { details: { field: 'network' } },
      );
    }
    const input = { params: { sandboxId: this.id }, body: { version, rules: [...rules] } };
    this.#info = await this.#server.call(ROUTES.updateNetwork, input, settings);
    return this;
  }

  /**
   * Switches to another stage of its policy. One that hides a path, or takes away something else that a
   * process could keep, ends its commands and sessions first. `loosen`: also to one that allows more, which
   * takes a key with the scope `policies:loosen` (`permission-denied`).
   */
  async setStage(stage: Stage, options: CallSettings & { loosen?: boolean } = {}): Promise<this> {
    const { loosen = false, ...settings } = options;
    const route = loosen ? ROUTES.loosenSandboxStage : ROUTES.setSandboxStage;
    const input = { params: { sandboxId: this.id }, body: { stage } };
    this.#info = await this.#server.call(route, input, settings);
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.stop();
    } catch (thrown) {
      // It has ended by itself so long ago that nobody knows it any more.
      if (!(thrown instanceof NotFoundError)) throw thrown;
    } finally {
      if (this.#isOnly) await this.#server.close();
    }
  }

  async #change(
    operation: 'pauseSandbox' | 'resumeSandbox' | 'stopSandbox',
    options: CallSettings,
  ): Promise<this> {
    const input = { params: { sandboxId: this.id } };
    this.#info = await this.#server.call(ROUTES[operation], input, options);
    return this;
  }
}

/** Makes a sandbox and waits for what was asked for. */
export async function createSandbox(server: Server, options: CreateOptions): Promise<Sandbox> {
  const { waitFor, idempotencyKey, timeout, signal } = options;
  const body = { ...sandboxSpecOf(options), ...present({ waitFor }) };
  const timeoutMs = timeout === undefined ? undefined : timeout * SECOND_MS;
  const settings = { idempotencyKey, timeoutMs, signal };
  return new Sandbox(server, await server.call(ROUTES.createSandbox, { body }, settings));
}

function endedError({ id, state, endReason, error }: SandboxInfo): StateConflictError {
  const why = error?.message ?? endReason ?? state;
  return new StateConflictError('state-conflict', `the sandbox ${id} has ended: ${why}`);
}
