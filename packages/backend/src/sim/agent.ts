import type { Duplex } from 'node:stream';
import { AETHER_FRAMES, type AetherFrame, NONCE_BYTES } from '@dsec/protocol';
import { asDsecError, DsecError } from '@dsec/std';
import { createFramedChannel, type FramedChannel } from '@dsec/transport';
import type { AgentContext } from './agent-context.ts';
import { type AgentLink, createAgentLink } from './agent-link.ts';
import { type Commands, createCommands } from './commands.ts';
import { createRequests, type Requests } from './requests.ts';

export const SIM_AGENT_VERSION = 'sim-1';
const STREAMS_MAX = 4096;
const GUESTS_MAX = 16;
const GUEST_DEADLINE_MS = 5000;
/** Version of the frames, the type of hello, and zeros: where a hello differs from a raw token. */
const HELLO_START = Buffer.from([1, 1, 0, 0, 0, 0, 0, 0]);

/** The server side of `AETHER_FRAMES`: what aether does, over connections in memory. */
export interface SimAgent {
  /** A new connection: framed when it says hello, raw when it begins with a token. */
  accept(duplex: Duplex): void;
  /** Breaks every connection, as the end of the process would. */
  end(): void;
  readonly instance: Uint8Array;
  /** How often it was reseeded after a restore. */
  readonly reseeds: number;
}

interface Guest {
  readonly duplex: Duplex;
  /** It has left the door: for a link, a request, or nothing. */
  readonly settled: AbortController;
  token: Uint8Array | undefined;
}

interface State {
  readonly context: AgentContext;
  readonly guests: Set<Guest>;
  readonly commands: Commands;
  readonly requests: Requests;
  readonly instance: Uint8Array;
  link: AgentLink | undefined;
  epoch: number;
  reseeds: number;
  hasEnded: boolean;
}

export function createSimAgent(context: AgentContext): SimAgent {
  const guests = new Set<Guest>();
  const findGuest = (token: Uint8Array) => {
    for (const guest of guests) {
      if (guest.token === undefined || Buffer.compare(guest.token, token) !== 0) continue;
      leave(guests, guest);
      return guest.duplex;
    }
    return undefined;
  };
  const state: State = {
    context,
    guests,
    commands: createCommands(context),
    requests: createRequests(context, findGuest),
    instance: context.random.bytes(NONCE_BYTES),
    link: undefined,
    epoch: 0,
    reseeds: 0,
    hasEnded: false,
  };
  return {
    accept: (duplex) => void accept(state, duplex),
    end() {
      state.hasEnded = true;
      for (const { duplex } of guests) duplex.destroy();
      state.link?.close();
    },
    instance: state.instance,
    get reseeds() {
      return state.reseeds;
    },
  };
}

async function accept(state: State, duplex: Duplex): Promise<void> {
  const { guests, context } = state;
  duplex.on('error', () => {});
  if (state.hasEnded || guests.size >= GUESTS_MAX) {
    duplex.destroy();
    return;
  }
  const guest: Guest = { duplex, settled: new AbortController(), token: undefined };
  guests.add(guest);
  duplex.once('close', () => leave(guests, guest));
  context.time.sleep(GUEST_DEADLINE_MS, guest.settled.signal).then(
    () => duplex.destroy(),
    () => {},
  );
  const start = await firstBytes(duplex);
  await context.time.thawed();
  if (!guests.has(guest)) return;
  if (HELLO_START.equals(start.subarray(4, 12))) {
    duplex.unshift(start);
    leave(guests, guest);
    return serveLink(state, duplex);
  }
  const token = start.subarray(0, NONCE_BYTES);
  if (start.length > NONCE_BYTES) duplex.unshift(start.subarray(NONCE_BYTES));
  if (state.requests.offer(token, duplex)) leave(guests, guest);
  else guest.token = token;
}

function leave(guests: Set<Guest>, guest: Guest): void {
  guests.delete(guest);
  guest.settled.abort();
}

/** As many bytes as it takes to tell a hello from a token; the connection is paused then. */
function firstBytes(duplex: Duplex): Promise<Buffer> {
  return new Promise((resolve) => {
    let start = Buffer.alloc(0);
    const onData = (chunk: Buffer) => {
      start = Buffer.concat([start, chunk]);
      if (start.length < NONCE_BYTES) return;
      duplex.off('data', onData);
      duplex.pause();
      resolve(start);
    };
    duplex.on('data', onData);
  });
}

async function serveLink(state: State, duplex: Duplex): Promise<void> {
  const channel = createFramedChannel(duplex, { protocol: AETHER_FRAMES, side: 'server' });
  duplex.resume();
  let link: AgentLink | undefined;
  try {
    link = await welcome(state, channel);
    for await (const frame of channel.frames()) {
      await state.context.time.thawed();
      if (state.link !== link) break;
      if (frame.epoch !== link.epoch) throw new DsecError('protocol', `epoch ${frame.epoch}`);
      dispatch(state, link, frame);
    }
    link.close();
  } catch (thrown) {
    const error = asDsecError(thrown);
    const parting = link ?? createAgentLink(channel, 0, state.context.time);
    parting.close(error.code === 'unavailable' ? undefined : error);
  }
}

async function welcome(state: State, channel: FramedChannel<AetherFrame>): Promise<AgentLink> {
  const hello = await channel.receive();
  if (hello?.type !== 'hello') throw new DsecError('protocol', 'expected a hello');
  if (hello.epoch < state.epoch) {
    throw new DsecError('conflict', 'a host of a newer epoch was here');
  }
  state.epoch = hello.epoch;
  state.link?.close();
  const link = createAgentLink(channel, hello.epoch, state.context.time);
  state.link = link;
  const fields = {
    nonce: hello.fields.nonce,
    version: 1,
    agentVersion: SIM_AGENT_VERSION,
    instance: state.instance,
  };
  link.put(0, { type: 'welcome', fields });
  return link;
}

function dispatch(state: State, link: AgentLink, frame: AetherFrame): void {
  switch (frame.type) {
    case 'ping':
      link.put(0, { type: 'pong', offset: frame.offset, fields: {} });
      break;
    case 'pong':
      break;
    case 'reseed':
      state.reseeds += 1;
      link.put(0, { type: 'reseeded', fields: {} });
      break;
    case 'exec-exit-ack':
      // Names its command, as it may come on any stream.
      state.commands.acknowledge(link, frame);
      break;
    case 'hello':
      throw new DsecError('protocol', 'a second hello');
    default:
      if (!openStream(state, link, frame)) {
        // Frames that crossed the end of their request on the way mean nothing any more.
        link.owner(frame.stream)?.consume(frame);
      }
  }
}

/** Whether the frame is a request, which it then begins. */
function openStream(state: State, link: AgentLink, frame: AetherFrame): boolean {
  const begin = beginning(state, link, frame);
  if (begin === undefined) return false;
  if (link.hasStream(frame.stream) || link.streamCount >= STREAMS_MAX) {
    throw new DsecError('protocol', `stream ${frame.stream} is in use, or too many are`);
  }
  begin();
  return true;
}

function beginning(state: State, link: AgentLink, frame: AetherFrame): (() => void) | undefined {
  const { commands, requests } = state;
  switch (frame.type) {
    case 'exec-start':
      return () => commands.start(link, frame);
    case 'exec-attach':
      return () => commands.attach(link, frame);
    case 'session-open':
      return () => commands.sessions.open(link, frame);
    case 'session-close':
      return () => commands.sessions.close(link, frame);
    case 'session-rules':
      return () => takeRules(state, link, frame);
    case 'quiesce':
      return () => quiesce(state, link, frame.stream);
    case 'session-watch':
      return () => commands.sessions.watch(link, frame);
    case 'file-read':
    case 'file-write':
    case 'file-stat':
    case 'file-list':
    case 'file-mkdir':
    case 'file-move':
    case 'file-remove':
    case 'port-open':
      return () => requests.open(link, frame);
    default:
      return undefined;
  }
}

function takeRules(
  { context }: State,
  link: AgentLink,
  { stream, fields }: Extract<AetherFrame, { type: 'session-rules' }>,
): void {
  context.rules = fields;
  context.isHeld = false;
  link.put(stream, { type: 'done', fields: {} });
}

function quiesce({ context, commands }: State, link: AgentLink, stream: number): void {
  context.isHeld = true;
  commands.sessions.endAll();
  void context.processes.killAll().then(() => link.put(stream, { type: 'done', fields: {} }));
}
