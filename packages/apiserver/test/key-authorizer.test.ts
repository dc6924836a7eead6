import type { Identity } from '@dsec/iam';
import { ROUTES, type Route } from '@dsec/protocol';
import type { PrincipalId, ProjectId } from '@dsec/std';
import type { RequestFacts } from '@dsec/transport';
import { expect, test, vi } from 'vitest';
import { createKeyAuthorizer } from '../src/http/key-authorizer.ts';

const identity: Identity = {
  ...{ keyId: 'k', project: 'p' as ProjectId, principal: 'u' as PrincipalId, scopes: ['exec'] },
};
const unlimited = { take: () => undefined };
const parts = {
  limits: unlimited,
  life: { requireLive: () => undefined },
  children: { list: async () => ['sb-s1-e1-aaaaaaaaaaaaaaaa'] },
};
const facts = (route: Route) =>
  ({ route, headers: { authorization: 'x' }, params: {} }) as unknown as RequestFacts;

test('lets in whose scopes hold the class of the operation', async () => {
  const authenticate = vi.fn(async () => identity);
  const authorize = createKeyAuthorizer({ ...parts, iam: { authenticate } });
  expect(await authorize(facts(ROUTES.startExec))).toEqual({ identity });
  expect(authenticate).toHaveBeenCalledWith('x');
  await expect(authorize(facts(ROUTES.createSandbox))).rejects.toMatchObject({
    ...{ code: 'permission-denied', details: { scope: 'sandboxes:write' } },
  });
});

test('open operations need no key, and read none', async () => {
  const authenticate = vi.fn(async () => identity);
  const authorize = createKeyAuthorizer({ ...parts, iam: { authenticate } });
  expect(await authorize(facts(ROUTES.getHealth))).toEqual({ identity: undefined });
  expect(authenticate).not.toHaveBeenCalled();
});

test('counts a request once, however often it is looked at, and not those of nobody', async () => {
  const take = vi.fn();
  const authorize = createKeyAuthorizer({
    ...parts,
    ...{ iam: { authenticate: async () => identity }, limits: { take } },
  });
  const asked = facts(ROUTES.startExec);
  await authorize(asked);
  await authorize({ ...asked });
  expect(take).toHaveBeenCalledTimes(1);
  await authorize(facts(ROUTES.startExec));
  await authorize(facts(ROUTES.getHealth));
  expect(take).toHaveBeenCalledTimes(2);
});
