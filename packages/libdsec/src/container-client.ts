/** The form in which the report writes it, for programs that follow it. */
import type { NetworkRule } from '@dsec/protocol';
import { MIB, SECOND_MS } from '@dsec/std';
import { Client, type ClientOptions } from './client.ts';
import type { CreateOptions } from './create-options.ts';
import { StateConflictError } from './errors.ts';
import { present } from './pages.ts';
import type { Sandbox } from './sandbox.ts';

export interface ContainerRunFields {
  /** `kind/name:version`: a layer. `name:version`: the base of that name. A plain name: an environment. */
  readonly containerImage: string;
  readonly memoryLimitMb?: number | undefined;
  readonly cpuCoresLimit?: number | undefined;
  /** Seconds until it is stopped, running or not. */
  readonly ttlRunningStop?: number | undefined;
  /** Services, `{ pypi: true }`, or kind to targets, `{ domain: ['example.org'] }`. Empty: nothing. */
  readonly networkRules?: Readonly<Record<string, readonly string[] | boolean>>;
  /** Who runs its commands. */
  readonly initUser?: string | undefined;
}

export class DSecContainerRunArgs implements ContainerRunFields {
  readonly containerImage: string;
  readonly memoryLimitMb: number | undefined;
  readonly cpuCoresLimit: number | undefined;
  readonly ttlRunningStop: number | undefined;
  readonly networkRules: NonNullable<ContainerRunFields['networkRules']>;
  readonly initUser: string | undefined;

  constructor(fields: ContainerRunFields) {
    this.containerImage = fields.containerImage;
    this.memoryLimitMb = fields.memoryLimitMb;
    this.cpuCoresLimit = fields.cpuCoresLimit;
    this.ttlRunningStop = fields.ttlRunningStop;
    this.networkRules = fields.networkRules ?? {};
    this.initUser = fields.initUser;
  }
}

export class DSecClient {
  readonly #options: ClientOptions;
  #client: Client | undefined;

  constructor(options: ClientOptions = {}) {
    this.#options = options;
  }

  /** Finds the server and sees that it answers. */
  async open(): Promise<this> {
    const client = new Client(this.#options);
    try {
      await client.version();
    } catch (thrown) {
      await client.close();
      throw thrown;
    }
    this.#client = client;
    return this;
  }

  /** Makes a container and waits until it is ready; `timeout` in seconds. */
  runContainer(
    run: ContainerRunFields,
    options: { readonly timeout?: number; readonly signal?: AbortSignal } = {},
  ): Promise<Sandbox> {
    if (this.#client === undefined) {
      throw new StateConflictError('state-conflict', 'the client is not open: call open() first');
    }
    return this.#client.create({ ...createOptionsOf(run), ...options });
  }

  async close(): Promise<void> {
    await this.#client?.close();
    this.#client = undefined;
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }
}

function createOptionsOf(run: ContainerRunFields): CreateOptions {
  const { memoryLimitMb, cpuCoresLimit, ttlRunningStop, networkRules = {}, initUser } = run;
  const limits = present({
    memoryBytes: memoryLimitMb === undefined ? undefined : memoryLimitMb * MIB,
    cpuMillicores: cpuCoresLimit === undefined ? undefined : Math.round(cpuCoresLimit * 1000),
  });
  const network = Object.entries(networkRules).flatMap(([kind, targets]) => rulesOf(kind, targets));
  return {
    ...imageOf(run.containerImage),
    ...{ backend: 'container', limits, network, user: initUser },
    ttl: ttlRunningStop === undefined ? undefined : { lifetimeMs: ttlRunningStop * SECOND_MS },
  };
}

/** What is no kind is refused by the server. */
function rulesOf(kind: string, targets: readonly string[] | boolean): NetworkRule[] {
  if (targets === true) return [{ kind: 'service', target: kind }];
  if (targets === false) return [];
  return targets.map((target) => ({ kind: kind as NetworkRule['kind'], target }));
}

function imageOf(image: string): Pick<CreateOptions, 'environment' | 'layers'> {
  if (image.includes('/')) return { layers: [image] };
  return image.includes(':') ? { layers: [`base/${image}`] } : { environment: image };
}
