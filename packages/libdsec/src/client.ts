import {
  type AuditRecord,
  type DoctorReport,
  type Event,
  type Health,
  ROUTES,
  type Sandbox as SandboxInfo,
  type Version,
} from '@dsec/protocol';
import { SECOND_MS } from '@dsec/std';
import { createBatch, type SandboxFailure } from './batch.ts';
import type { CreateManyOptions, CreateOptions } from './create-options.ts';
import { Environments } from './environments.ts';
import { type EventOptions, followEvents } from './events.ts';
import { Jobs } from './jobs.ts';
import { Keys } from './keys.ts';
import { Layers } from './layers.ts';
import { itemsOf, type ListOptions, present } from './pages.ts';
import { createSandbox, Sandbox } from './sandbox.ts';
import { type CallSettings, createServer, type Server, TIMEOUT_MS } from './server.ts';
import { findServer, type ServerSettings } from './settings.ts';

export interface ClientOptions extends ServerSettings {
  /** Seconds for a call that says nothing else. Absent: 60. */
  readonly timeout?: number | undefined;
}

export interface SandboxListOptions extends ListOptions {
  readonly state?: readonly SandboxInfo['state'][] | undefined;
  readonly job?: string | undefined;
  /** Labels that all must be there with these values. */
  readonly label?: Readonly<Record<string, string>> | undefined;
}

export interface AuditOptions extends ListOptions {
  readonly sandbox?: string | undefined;
  readonly job?: string | undefined;
}

/**
 * A client of one server. It is found by the arguments, the environment or a file (`findServer`); no
 * connection is made before the first call. Calls that may be repeated are repeated when the server cannot
 * be reached for a while; what creates something carries a key, so that a repetition creates nothing twice.
 * Errors have a class for each code. Leaving its context (`await using`) closes it.
 */
export class Client {
  readonly #server: Server;
  readonly layers: Layers;
  readonly environments: Environments;
  readonly keys: Keys;
  readonly jobs: Jobs;

  constructor(options: ClientOptions = {}) {
    const { timeout } = options;
    const timeoutMs = timeout === undefined ? TIMEOUT_MS : timeout * SECOND_MS;
    this.#server = createServer({ ...findServer(options), timeoutMs });
    this.layers = new Layers(this.#server);
    this.environments = new Environments(this.#server);
    this.keys = new Keys(this.#server);
    this.jobs = new Jobs(this.#server);
  }

  /** Makes a sandbox, of a named environment or of layers, and waits until it is ready. */
  create(options: CreateOptions = {}): Promise<Sandbox> {
    return createSandbox(this.#server, options);
  }

  /**
   * Makes many of one kind, and yields each as it becomes ready; what failed is yielded as a
   * `SandboxFailure`. What was made when the loop is left runs on, to its time to live.
   */
  createMany(
    count: number,
    options: CreateManyOptions = {},
  ): AsyncGenerator<Sandbox | SandboxFailure> {
    return createBatch(this.#server, count, options);
  }

  /** A sandbox by its id. */
  async get(sandboxId: string, options: CallSettings = {}): Promise<Sandbox> {
    const input = { params: { sandboxId }, query: {} };
    return new Sandbox(this.#server, await this.#server.call(ROUTES.getSandbox, input, options));
  }

  /** Sandboxes in the order of their creation, those that have ended not long ago among them. */
  async *list(options: SandboxListOptions = {}): AsyncGenerator<Sandbox> {
    const { state, job, label = {}, signal } = options;
    const labels = Object.entries(label).map(([name, value]) => `${name}=${value}`);
    const filter = present({
      ...{ job, state: state && [...state] },
      label: labels.length === 0 ? undefined : labels,
    });
    const sandboxes = itemsOf(
      options,
      (page) =>
        this.#server.call(ROUTES.listSandboxes, { query: { ...filter, ...page } }, { signal }),
      (page) => page.sandboxes,
    );
    for await (const sandbox of sandboxes) yield new Sandbox(this.#server, sandbox);
  }

  /** What happens, from a cursor or from now on, without end, over lost connections. */
  events(options: EventOptions = {}): AsyncGenerator<Event> {
    return followEvents(this.#server, options);
  }

  /**
   * What sandboxes tried that they may not: a record for each that tried something, in the order of their
   * creation. As it happens, it is among the events `denied` and `tamper`.
   */
  audit(options: AuditOptions = {}): AsyncGenerator<AuditRecord> {
    const { sandbox, job, signal } = options;
    const filter = present({ sandbox, job });
    return itemsOf(
      options,
      (page) => this.#server.call(ROUTES.getAudit, { query: { ...filter, ...page } }, { signal }),
      (page) => page.records,
    );
  }

  health(options: CallSettings = {}): Promise<Health> {
    return this.#server.call(ROUTES.getHealth, {}, options);
  }

  version(options: CallSettings = {}): Promise<Version> {
    return this.#server.call(ROUTES.getVersion, {}, options);
  }

  /** What the node can do and enforce. */
  doctor(options: CallSettings = {}): Promise<DoctorReport> {
    return this.#server.call(ROUTES.getDoctorReport, {}, options);
  }

  /** In the Prometheus text format. */
  metrics(options: CallSettings = {}): Promise<string> {
    return this.#server.call(ROUTES.getMetrics, {}, options);
  }

  /** Ends its connections; what is under way fails. */
  close(): Promise<void> {
    return this.#server.close();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}
