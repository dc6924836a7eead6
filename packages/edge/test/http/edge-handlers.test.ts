import { ROUTES } from '@dsec/protocol';
import { expect, it } from 'vitest';
import { createEdgeHandlers } from '../../src/http/edge-handlers.ts';
import { EDGE_ROUTES, UNSUPPORTED } from '../../src/http/edge-routes.ts';

const handlers = createEdgeHandlers({ version: '0.1.0', exec: {}, sandboxes: {} } as never);

it('serves the routes whose home is an edge or both, and no other', () => {
  const homes = Object.entries(ROUTES).filter(([, { home }]) => home !== 'apiserver');
  expect(Object.keys(EDGE_ROUTES).sort()).toEqual(homes.map(([id]) => id).sort());
  expect(Object.keys(handlers).sort()).toEqual(Object.keys(EDGE_ROUTES).sort());
});

it.each(Object.entries(EDGE_ROUTES))('%s has a handler', (operation) => {
  expect(handlers[operation as keyof typeof EDGE_ROUTES]).toBeTypeOf('function');
});

it.each(Object.entries(UNSUPPORTED))('%s is refused with the reason', async (operation, reason) => {
  const handler = handlers[operation as keyof typeof UNSUPPORTED] as () => Promise<unknown>;
  await expect(handler()).rejects.toMatchObject({ code: 'unsupported', message: reason });
});
