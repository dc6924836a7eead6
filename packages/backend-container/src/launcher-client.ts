import { LAUNCHER_FRAMES, type LauncherFrame, NONCE_BYTES, type SpawnFields } from '@dsec/protocol';
import { asDsecError, DsecError, isErrorCode, type Random, systemRandom } from '@dsec/std';
import { connectUnix, createFramedChannel, type FramedChannel } from '@dsec/transport';

type FieldsOf<T extends LauncherFrame['type']> = Extract<LauncherFrame, { type: T }>['fields'];
type RequestType =
  | 'spawn'
  | 'adopt'
  | 'kill'
  | 'release'
  | 'list'
  | 'layer-mount'
  | 'layer-unmount'
  | 'layer-list'
  | 'router'
  | 'remount'
  | 'cgroup-write';
type AnswerType = 'spawned' | 'listed' | 'layers-listed' | 'done';

export interface ObjectKey {
  readonly name: string;
  readonly generation: number;
}

export type SpawnedObject = FieldsOf<'spawned'>;
export type ListedObject = FieldsOf<'listed'>['objects'][number];
export type MountedLayer = FieldsOf<'layers-listed'>['layers'][number];
export type ExitedObject = FieldsOf<'exited'>;

export interface LauncherClientOptions {
  readonly socketPath: string;
  readonly edgeId: string;
  /** Of the edge's state root; the launcher drops connections of older ones. */
  readonly epoch: number;
  /** Called for each object that ends while connected; `listObjects` tells of the others. */
  readonly onExited?: (exited: ExitedObject) => void;
  readonly random?: Random;
  readonly signal?: AbortSignal;
}

/**
 * A connection to the launcher. Requests run at the same time; each is answered once. Their promises
 * reject with the launcher's error, whose details hold `step` and `errno`; with the signal's, after which
 * the request may still be carried out; or with `unavailable` when the connection is lost, after which a
 * new one is made and what may have been done is asked for again. See launcher-messages.ts for each request.
 */
export interface LauncherClient {
  /** Differs after a restart of the launcher: then adopt what runs. */
  readonly instance: Uint8Array;
  readonly launcherVersion: string;
  spawn(spec: SpawnFields, signal?: AbortSignal): Promise<SpawnedObject>;
  adopt(fields: FieldsOf<'adopt'>, signal?: AbortSignal): Promise<void>;
  kill(key: ObjectKey, signal?: AbortSignal): Promise<void>;
  release(key: ObjectKey, signal?: AbortSignal): Promise<void>;
  /** All of them, in the order of their names. */
  listObjects(signal?: AbortSignal): Promise<readonly ListedObject[]>;
  mountLayer(fields: FieldsOf<'layer-mount'>, signal?: AbortSignal): Promise<void>;
  unmountLayer(layerId: string, signal?: AbortSignal): Promise<void>;
  listLayers(signal?: AbortSignal): Promise<readonly MountedLayer[]>;
  /** Makes the router namespace unless it is there; the gateway's address as a number. */
  makeRouter(gateway: number, signal?: AbortSignal): Promise<void>;
  /** Replaces what was mounted for a policy. */
  remount(fields: FieldsOf<'remount'>, signal?: AbortSignal): Promise<void>;
  writeCgroup(fields: FieldsOf<'cgroup-write'>, signal?: AbortSignal): Promise<void>;
  close(): void;
  /** Resolves once the connection is gone, with the reason. */
  readonly closed: Promise<DsecError>;
}

const PROTOCOL_VERSION = 1;
const HELLO_TIMEOUT_MS = 5_000;
/** Requests that may be under way; more are `overloaded`. */
const REQUESTS_MAX = 4096;
const STREAM_MAX = 2 ** 32 - 1;

interface Waiting {
  readonly answer: AnswerType;
  resolve(fields: unknown): void;
  reject(error: DsecError): void;
}

type Channel = FramedChannel<LauncherFrame>;

/**
 * Connects and says hello. `unavailable` when nobody listens; `conflict` when a newer edge has taken over.
 */
export async function connectLauncher(options: LauncherClientOptions): Promise<LauncherClient> {
  const socket = connectUnix(options.socketPath);
  const channel = createFramedChannel(socket, { protocol: LAUNCHER_FRAMES, side: 'client' });
  const limits = [AbortSignal.timeout(HELLO_TIMEOUT_MS), options.signal].filter(
    (s) => s !== undefined,
  );
  try {
    const welcome = await sayHello(channel, options, AbortSignal.any(limits));
    return createClient(channel, welcome, options);
  } catch (thrown) {
    channel.close(asDsecError(thrown));
    throw thrown;
  }
}

async function sayHello(channel: Channel, options: LauncherClientOptions, signal: AbortSignal) {
  const nonce = (options.random ?? systemRandom).bytes(NONCE_BYTES);
  const fields = { nonce, versionMax: PROTOCOL_VERSION, edgeId: options.edgeId };
  await channel.send({ type: 'hello', stream: 0, epoch: options.epoch, offset: 0, fields }, signal);
  const frame = await channel.receive(signal);
  if (frame === undefined) throw new DsecError('unavailable', 'the launcher closed the connection');
  if (frame.type === 'error') throw errorOf(frame.fields);
  if (frame.type !== 'welcome' || !Buffer.from(frame.fields.nonce).equals(nonce)) {
    throw new DsecError('protocol', 'the launcher did not answer the hello');
  }
  return frame.fields;
}

function createClient(
  channel: Channel,
  welcome: FieldsOf<'welcome'>,
  options: LauncherClientOptions,
): LauncherClient {
  const { call, closed } = createCaller(channel, options);
  const done = async (type: RequestType, fields: unknown, signal?: AbortSignal) => {
    await call(type, fields, 'done', signal);
  };
  return {
    instance: Uint8Array.from(welcome.instance),
    launcherVersion: welcome.launcherVersion,
    spawn: (spec, signal) => call('spawn', spec, 'spawned', signal),
    adopt: (fields, signal) => done('adopt', fields, signal),
    kill: (key, signal) => done('kill', key, signal),
    release: (key, signal) => done('release', key, signal),
    listObjects: (signal) =>
      allPages(async (after: ListedObject | undefined) => {
        const page = await call('list', after && { after: after.name }, 'listed', signal);
        return { items: page.objects, more: page.more };
      }),
    mountLayer: (fields, signal) => done('layer-mount', fields, signal),
    unmountLayer: (layerId, signal) => done('layer-unmount', { layerId }, signal),
    listLayers: (signal) =>
      allPages(async (after: MountedLayer | undefined) => {
        const fields = after && { after: after.layerId };
        const page = await call('layer-list', fields, 'layers-listed', signal);
        return { items: page.layers, more: page.more };
      }),
    makeRouter: (gateway, signal) => done('router', { gateway }, signal),
    remount: (fields, signal) => done('remount', fields, signal),
    writeCgroup: (fields, signal) => done('cgroup-write', fields, signal),
    close: () => channel.close(),
    closed,
  };
}

async function allPages<T>(
  read: (after: T | undefined) => Promise<{ items: readonly T[]; more: boolean }>,
): Promise<readonly T[]> {
  const all: T[] = [];
  for (;;) {
    const { items, more } = await read(all.at(-1));
    all.push(...items);
    if (!more) return all;
    if (items.length === 0) throw new DsecError('protocol', 'an empty page that is not the last');
  }
}

/** Matches answers to requests by their streams. */
function createCaller(channel: Channel, options: LauncherClientOptions) {
  const waiting = new Map<number, Waiting>();
  let lastStream = 0;
  let sequence = 0;

  const freeStream = () => {
    if (waiting.size >= REQUESTS_MAX) {
      throw new DsecError('overloaded', 'too many requests to the launcher are under way');
    }
    do lastStream = lastStream === STREAM_MAX ? 1 : lastStream + 1;
    while (waiting.has(lastStream));
    return lastStream;
  };

  const call = async <A extends AnswerType>(
    type: RequestType,
    fields: unknown,
    answer: A,
    signal?: AbortSignal,
  ): Promise<FieldsOf<A>> => {
    signal?.throwIfAborted();
    const stream = freeStream();
    // The caller need not wait: an answer is still taken when it comes.
    const answered = new Promise<unknown>((resolve, reject) => {
      const onAbort = () => reject(asDsecError(signal?.reason));
      const over = () => signal?.removeEventListener('abort', onAbort);
      signal?.addEventListener('abort', onAbort, { once: true });
      waiting.set(stream, {
        answer,
        resolve(value) {
          over();
          resolve(value);
        },
        reject(error) {
          over();
          reject(error);
        },
      });
    });
    sequence += 1;
    const frame = { type, stream, epoch: options.epoch, offset: sequence, fields: fields ?? {} };
    // Without the signal: a frame that is given up half way would leave its answer without a request.
    channel.send(frame as LauncherFrame).catch((thrown: unknown) => {
      waiting.get(stream)?.reject(asDsecError(thrown));
      waiting.delete(stream);
    });
    return (await answered) as FieldsOf<A>;
  };

  const receiveAll = async (): Promise<DsecError> => {
    try {
      for await (const frame of channel.frames()) take(frame, waiting, options);
      return new DsecError('unavailable', 'the launcher closed the connection');
    } catch (thrown) {
      return asDsecError(thrown);
    }
  };
  const closed = receiveAll().then((error) => {
    channel.close(error);
    for (const { reject } of waiting.values()) reject(error);
    waiting.clear();
    return error;
  });
  return { call, closed };
}

function take(
  frame: LauncherFrame,
  waiting: Map<number, Waiting>,
  options: LauncherClientOptions,
): void {
  if (frame.type === 'exited') {
    options.onExited?.(frame.fields);
    return;
  }
  if (frame.type === 'error' && frame.stream === 0) throw errorOf(frame.fields);
  const request = waiting.get(frame.stream);
  if (request === undefined) throw new DsecError('protocol', `an answer to nothing: ${frame.type}`);
  if (frame.type !== 'error' && frame.type !== request.answer) {
    throw new DsecError('protocol', `${frame.type} where ${request.answer} was due`);
  }
  waiting.delete(frame.stream);
  if (frame.type === 'error') request.reject(errorOf(frame.fields));
  else request.resolve(frame.fields);
}

function errorOf(fields: FieldsOf<'error'>): DsecError {
  const { code, message, errnoValue, step } = fields;
  const known = isErrorCode(code) ? code : 'internal';
  const where = step === undefined ? '' : `${step}: `;
  return new DsecError(known, `launcher: ${where}${message}`, {
    details: {
      ...(step !== undefined && { step }),
      ...(errnoValue !== undefined && { errno: errnoValue }),
    },
  });
}
