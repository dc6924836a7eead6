import { setMaxListeners } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Route } from '@dsec/protocol';
import { asDsecError, DsecError } from '@dsec/std';
import type { RequestFacts } from './http-routes.ts';

/** How long each call lives: until its caller is gone or the server closes. */
export interface CallLifetimes {
  /** The signal of a call, from now until its connection is done with it. */
  begin(response: ServerResponse, facts: RequestFacts): AbortSignal;
  /** Asks again for calls that go on and on, once for each right; those that are refused now end. */
  recheck(authorize: (facts: RequestFacts) => Promise<unknown>): Promise<void>;
  /** Ends calls that have no end of their own and can be taken up again elsewhere. */
  endFollowers(error: DsecError): void;
  endAll(error: DsecError): void;
}

/** More would be a leak. */
const LISTENERS_MAX = 1024;

export function createCallLifetimes(): CallLifetimes {
  const calls = new Map<AbortController, RequestFacts>();
  const end = (error: DsecError, concerned: (route: Route) => boolean) => {
    for (const [controller, { route }] of calls) if (concerned(route)) controller.abort(error);
  };
  return {
    begin(response, facts) {
      const controller = new AbortController();
      // A call may do many things at a time, each of which ends with it.
      setMaxListeners(LISTENERS_MAX, controller.signal);
      calls.set(controller, facts);
      const end = () => {
        calls.delete(controller);
        if (response.writableFinished) return;
        controller.abort(new DsecError('cancelled', 'the caller is gone'));
      };
      // A WebSocket leaves its response behind and takes the connection with it.
      if (facts.route.reply.kind === 'socket') response.socket?.once('close', end);
      else response.once('close', end);
      return controller.signal;
    },
    async recheck(authorize) {
      const answers = new Map<string, DsecError | undefined>();
      for (const [controller, facts] of [...calls]) {
        const { reply, operationClass } = facts.route;
        if (!GOES_ON.has(reply.kind)) continue;
        const right = `${operationClass} ${facts.headers.authorization}`;
        if (!answers.has(right)) answers.set(right, await refusalOf(authorize(facts)));
        const refusal = answers.get(right);
        if (refusal !== undefined) controller.abort(refusal);
      }
    },
    endFollowers: (error) => end(error, ({ reply }) => isFollower(reply.kind)),
    endAll: (error) => end(error, () => true),
  };
}

/** Any other error says nothing about the right. */
async function refusalOf(asked: Promise<unknown>): Promise<DsecError | undefined> {
  try {
    await asked;
  } catch (thrown) {
    const error = asDsecError(thrown);
    if (error.code === 'unauthenticated' || error.code === 'permission-denied') return error;
  }
  return undefined;
}

/** Replies that may take as long as they like. */
const GOES_ON: ReadonlySet<Route['reply']['kind']> = new Set([
  'events',
  'socket',
  'bytes',
  'lines',
]);

function isFollower(kind: Route['reply']['kind']): boolean {
  return kind === 'events' || kind === 'socket';
}
