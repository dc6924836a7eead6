import type { ExecId } from '@dsec/std';
import type { ExecServices } from '../exec/exec-services.ts';
import { contextOf, type EdgeHandlers, keyedContextOf } from './handlers.ts';
import { entryOfVisitor } from './ticket-authorizer.ts';

type ExecOperation =
  | 'startExec'
  | 'listExecs'
  | 'getExec'
  | 'readExecOutput'
  | 'writeExecStdin'
  | 'signalExec'
  | 'resizeExec'
  | 'setExecTimeout'
  | 'attachExec'
  | 'openSession'
  | 'listSessions'
  | 'closeSession';

/** The route has checked the form. */
const idOf = (params: { readonly execId: string }) => params.execId as ExecId;

export function createExecHandlers({
  execs,
  sessions,
  readOutput,
  attach,
}: Pick<ExecServices, 'execs' | 'sessions' | 'readOutput' | 'attach'>): Pick<
  EdgeHandlers,
  ExecOperation
> {
  return {
    startExec: ({ body }, call) =>
      execs.start(entryOfVisitor(call.principal), body, keyedContextOf(call)),
    listExecs: async ({ query }, call) => execs.list(entryOfVisitor(call.principal), query),
    getExec: ({ params, query }, call) =>
      execs.get(entryOfVisitor(call.principal), idOf(params), query, contextOf(call)),
    async readExecOutput({ params, query }, call) {
      const entry = entryOfVisitor(call.principal);
      const output = await readOutput(entry, idOf(params), query, contextOf(call));
      const headers = { 'dsec-offset': String(output.offset), 'dsec-end': String(output.end) };
      return { headers, body: output.body };
    },
    writeExecStdin: ({ params, query, body }, call) =>
      execs.writeStdin(
        entryOfVisitor(call.principal),
        ...([idOf(params), query, body, contextOf(call)] as const),
      ),
    async signalExec({ params, body }, call) {
      const entry = entryOfVisitor(call.principal);
      await execs.signal(entry, idOf(params), body, keyedContextOf(call));
      return undefined;
    },
    async resizeExec({ params, body }, call) {
      await execs.resize(entryOfVisitor(call.principal), idOf(params), body, contextOf(call));
      return undefined;
    },
    async setExecTimeout({ params, body }, call) {
      await execs.setTimeout(entryOfVisitor(call.principal), idOf(params), body, contextOf(call));
      return undefined;
    },
    attachExec: ({ params, query }, call, channel) =>
      attach(entryOfVisitor(call.principal), idOf(params), query, channel, call.signal),
    openSession: ({ body }, call) =>
      sessions.open(entryOfVisitor(call.principal), body, keyedContextOf(call)),
    listSessions: async ({ query }, call) => sessions.list(entryOfVisitor(call.principal), query),
    async closeSession({ params }, call) {
      await sessions.close(entryOfVisitor(call.principal), params.sessionId, contextOf(call));
      return undefined;
    },
  };
}
