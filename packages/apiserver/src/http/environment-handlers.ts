import type { Environments } from '../layers/environments.ts';
import type { ApiHandlers } from './handlers.ts';
import { identityOf } from './key-authorizer.ts';

type EnvironmentOperation =
  | 'listEnvironments'
  | 'getEnvironment'
  | 'putEnvironment'
  | 'removeEnvironment';

export function createEnvironmentHandlers(
  environments: Environments,
): Pick<ApiHandlers, EnvironmentOperation> {
  return {
    listEnvironments: ({ query }, call) =>
      environments.list(identityOf(call.principal).project, query),
    getEnvironment: ({ params }, call) =>
      environments.get(identityOf(call.principal).project, params.name),
    putEnvironment: ({ params, body }, call) =>
      environments.put(identityOf(call.principal).project, params.name, body),
    async removeEnvironment({ params }, call) {
      await environments.remove(identityOf(call.principal).project, params.name);
      return undefined;
    },
  };
}
