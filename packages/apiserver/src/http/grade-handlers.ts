import { sha256Of } from '@dsec/transport';
import type { Grade } from '../grade/grade.ts';
import type { ApiHandlers } from './handlers.ts';
import { identityOf } from './key-authorizer.ts';

export function createGradeHandlers(grade: Grade): Pick<ApiHandlers, 'gradeSandbox'> {
  return {
    async gradeSandbox({ params, body }, call) {
      const { bodyDigest = sha256Of(''), requestId, traceparent, signal } = call;
      const identity = identityOf(call.principal);
      return grade(params.sandboxId, body, {
        ...{ identity, bodyDigest, requestId, traceparent, signal },
        idempotencyKey: undefined,
      });
    },
  };
}
