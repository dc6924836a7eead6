import type { DsecError } from '@dsec/std';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { AnsweredRequest, Call } from './http-routes.ts';

/** What is told of each request when it has ended: once, however it ended. */
export interface CallRecords<Principal> {
  begin(request: FastifyRequest, reply: FastifyReply): void;
  letIn(request: FastifyRequest, call: Call<Principal>): void;
  failed(request: FastifyRequest, error: DsecError): void;
  /** A WebSocket has ended, which leaves its response behind. */
  end(request: FastifyRequest, status: number): void;
}

const STATUS_LEFT = 499;

export function createCallRecords<Principal>(
  onAnswered: ((answered: AnsweredRequest<Principal>) => void) | undefined,
): CallRecords<Principal> {
  const open = new WeakMap<
    FastifyRequest,
    { startMs: number; call?: Call<Principal>; error?: DsecError }
  >();
  const end = (request: FastifyRequest, status: number) => {
    const record = open.get(request);
    open.delete(request);
    if (record === undefined) return;
    const { operation } = request.routeOptions.config as { operation?: string };
    const { startMs, call, error } = record;
    const durationMs = performance.now() - startMs;
    onAnswered?.({ operation, requestId: request.id, status, error, durationMs, call });
  };
  return {
    begin(request, reply) {
      if (onAnswered === undefined) return;
      open.set(request, { startMs: performance.now() });
      reply.raw.once('close', () => {
        end(request, reply.raw.writableFinished ? reply.raw.statusCode : STATUS_LEFT);
      });
    },
    letIn(request, call) {
      const record = open.get(request);
      if (record !== undefined) record.call = call;
    },
    failed(request, error) {
      const record = open.get(request);
      if (record !== undefined) record.error = error;
    },
    end,
  };
}
