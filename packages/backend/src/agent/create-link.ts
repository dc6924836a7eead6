import type { AetherFrame } from '@dsec/protocol';
import { asDsecError, DsecError } from '@dsec/std';
import { abortError, type FramedChannel } from '@dsec/transport';
import type {
  AgentFields,
  AgentLimits,
  AgentLink,
  HostFrameType,
  StreamFrame,
} from './agent-link.ts';
import {
  createAgentStream,
  createSinkStream,
  errorOfAgent,
  type StreamEnd,
  type StreamHost,
} from './agent-streams.ts';

interface LinkContext {
  readonly epoch: number;
  readonly limits: AgentLimits;
  readonly welcome: AgentFields<'welcome'>;
}

/** A link over a channel whose welcome has been seen. */
export function createLink(channel: FramedChannel<AetherFrame>, context: LinkContext): AgentLink {
  const { epoch, limits, welcome } = context;
  const streams = new Map<number, StreamEnd>();
  const questions = createQuestions();
  let lastStream = 0;
  let failure: DsecError | undefined;
  let resolveClosed: (error: DsecError) => void = () => {};
  const closed = new Promise<DsecError>((resolve) => {
    resolveClosed = resolve;
  });

  const host: StreamHost = {
    send: (frame, signal) => channel.send({ epoch, ...frame } as AetherFrame, signal),
    leave: (number) => void streams.delete(number),
  };
  const fail = (error: DsecError) => {
    if (failure !== undefined) return;
    failure = error;
    channel.close(error);
    for (const stream of [...streams.values()]) stream.fail(error);
    questions.fail(error);
    resolveClosed(error);
  };
  const open = <S>(make: (number: number) => { readonly stream: S; readonly end: StreamEnd }) => {
    if (failure !== undefined) throw failure;
    if (streams.size >= limits.streamsMax) {
      throw new DsecError('overloaded', `${limits.streamsMax} requests are open in the sandbox`);
    }
    lastStream += 1;
    const { stream, end } = make(lastStream);
    streams.set(lastStream, end);
    return stream;
  };
  const take = (frame: AetherFrame) => {
    if (frame.epoch !== epoch) throw new DsecError('protocol', `a frame of epoch ${frame.epoch}`);
    if (frame.stream === 0) return questions.take(frame);
    if (frame.stream > lastStream) {
      throw new DsecError('protocol', `stream ${frame.stream} was never opened`);
    }
    // Nobody: it crossed the end of its request on the way.
    streams.get(frame.stream)?.take(frame);
  };
  void takeFrames(channel, take).then(fail);

  const link: AgentLink = {
    instance: Buffer.from(welcome.instance).toString('hex'),
    agentVersion: welcome.agentVersion,
    open: (options = {}) => open((number) => createAgentStream(number, host, limits, options)),
    openSink: (sink) => open((number) => createSinkStream(number, host, sink)),
    request: (type, fields, signal) => request(link, type, fields, signal),
    async ping(signal) {
      const { number, answer } = questions.ask('pong', signal);
      await host.send({ type: 'ping', stream: 0, offset: number, fields: {} }, signal);
      await answer;
    },
    async reseed(fields, signal) {
      const { answer } = questions.ask('reseeded', signal);
      await host.send({ type: 'reseed', stream: 0, offset: 0, fields }, signal);
      await answer;
    },
    close: (error = new DsecError('cancelled', 'the link was closed')) => fail(error),
    closed,
  };
  return link;
}

/** Resolves with what ended the link. */
async function takeFrames(
  channel: FramedChannel<AetherFrame>,
  take: (frame: AetherFrame) => void,
): Promise<DsecError> {
  try {
    for (let frame = await channel.receive(); frame !== undefined; ) {
      take(frame);
      frame = await channel.receive();
    }
    return new DsecError('unavailable', 'the agent ended the connection');
  } catch (thrown) {
    return asDsecError(thrown);
  }
}

async function request<T extends HostFrameType>(
  link: AgentLink,
  type: T,
  fields: AgentFields<T>,
  signal: AbortSignal | undefined,
): Promise<StreamFrame> {
  const stream = link.open();
  let answered = false;
  try {
    await stream.send(type, fields);
    const answer = await stream.receive(signal);
    answered = true;
    return answer;
  } finally {
    stream.leave({ cancel: !answered && signal?.aborted === true });
  }
}

interface Question {
  readonly type: 'pong' | 'reseeded';
  readonly number: number;
  resolve(): void;
  reject(error: unknown): void;
}

/** Most questions on stream 0 that wait for their answers. */
const QUESTIONS_MAX = 64;

/** What is asked on stream 0 is answered in order. */
function createQuestions() {
  const waiting: Question[] = [];
  let asked = 0;
  let failure: DsecError | undefined;

  return {
    ask(type: Question['type'], signal?: AbortSignal) {
      if (failure !== undefined) throw failure;
      if (waiting.length >= QUESTIONS_MAX) throw new DsecError('overloaded', 'too many pings');
      asked += 1;
      const number = asked;
      let onAbort = () => {};
      const answer = new Promise<void>((resolve, reject) => {
        // The question stays in its place: its answer comes all the same.
        onAbort = () => reject(abortError(signal));
        waiting.push({ type, number, resolve, reject });
      });
      signal?.addEventListener('abort', onAbort, { once: true });
      answer.catch(() => {}).finally(() => signal?.removeEventListener('abort', onAbort));
      return { number, answer };
    },
    /** Throws what the agent says before it closes the link, or `protocol`. */
    take(frame: AetherFrame) {
      const first = waiting[0];
      if (frame.type === 'error') {
        const error = errorOfAgent(frame.fields);
        if (first?.type !== 'reseeded') throw error;
        waiting.shift();
        return first.reject(error);
      }
      const fits = frame.type === first?.type;
      if (
        first === undefined ||
        !fits ||
        (frame.type === 'pong' && frame.offset !== first.number)
      ) {
        throw new DsecError('protocol', `${frame.type} was not asked for`);
      }
      waiting.shift();
      first.resolve();
    },
    fail(error: DsecError) {
      failure = error;
      for (const question of waiting.splice(0)) question.reject(error);
    },
  };
}
