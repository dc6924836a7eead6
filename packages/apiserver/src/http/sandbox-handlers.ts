import { sha256Of } from '@dsec/transport';
import type { CreateSandbox } from '../create/create.ts';
import type { ApiHandlers } from './handlers.ts';
import { identityOf } from './key-authorizer.ts';

export function createSandboxHandlers({
  create,
}: {
  readonly create: CreateSandbox;
}): Pick<ApiHandlers, 'createSandbox'> {
  return {
    createSandbox: ({ body }, call) =>
      create(body, {
        identity: identityOf(call.principal),
        idempotencyKey: call.idempotencyKey,
        bodyDigest: call.bodyDigest ?? sha256Of(''),
        requestId: call.requestId,
        traceparent: call.traceparent,
        signal: call.signal,
      }),
  };
}
