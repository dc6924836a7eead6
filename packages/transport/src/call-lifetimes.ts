import { setMaxListeners } from 'node:events';
import type { ServerResponse } from 'node:http';
import type { Route } from '@dsec/protocol';
import { DsecError } from '@dsec/std';

/** How long each call lives: until its caller is gone or the server closes. */
export interface CallLifetimes {
  /** The signal of a call, from now until its connection is done with it. */
  begin(response: ServerResponse, route: Route): AbortSignal;
  /** Ends calls that have no end of their own and can be taken up again elsewhere. */
  endFollowers(error: DsecError): void;
  endAll(error: DsecError): void;
}

/** More would be a leak. */
const LISTENERS_MAX = 1024;

export function createCallLifetimes(): CallLifetimes {
  const calls = new Map<AbortController, Route>();
  const end = (error: DsecError, concerned: (route: Route) => boolean) => {
    for (const [controller, route] of calls) if (concerned(route)) controller.abort(error);
  };
  return {
    begin(response, route) {
      const controller = new AbortController();
      // A call may do many things at a time, each of which ends with it.
      setMaxListeners(LISTENERS_MAX, controller.signal);
      calls.set(controller, route);
      const end = () => {
        calls.delete(controller);
        if (response.writableFinished) return;
        controller.abort(new DsecError('cancelled', 'the caller is gone'));
      };
      // A WebSocket leaves its response behind and takes the connection with it.
      if (route.reply.kind === 'socket') response.socket?.once('close', end);
      else response.once('close', end);
      return controller.signal;
    },
    endFollowers: (error) => end(error, ({ reply }) => isFollower(reply.kind)),
    endAll: (error) => end(error, () => true),
  };
}

function isFollower(kind: Route['reply']['kind']): boolean {
  return kind === 'events' || kind === 'socket';
}
