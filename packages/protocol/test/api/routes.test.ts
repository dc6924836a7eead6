import { ROUTES, type Route } from '@dsec/protocol';
import { expect, test } from 'vitest';

const routes = Object.entries(ROUTES) as [string, Route][];

test('no two routes can answer the same request', () => {
  const shapes = routes.map(([, { method, path }]) => `${method} ${path.replace(/\{\w+\}/g, '*')}`);
  expect(new Set(shapes).size).toBe(routes.length);
});

test.each(routes)('%s is consistent', (_, route) => {
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  expect(Object.keys(route.params.properties).sort()).toEqual(names.sort());
  expect(route.params.required ?? []).toHaveLength(names.length);
  expect(route.path).toMatch(/^\/v1\/[a-z]/);
  expect(route.summary).toMatch(/\.$/);
  if (route.method === 'GET') expect(route.body.kind).toBe('none');
  if (route.method === 'GET' && route.reply.kind !== 'socket') expect(route.effect).toBe('read');
  if (route.method === 'PUT') expect(route.effect).toBe('idempotent');
  if (route.effect === 'read') expect(route.operationClass).not.toMatch(/write/);
});

test('what concerns one sandbox is done by its edge, under its path', () => {
  for (const [id, route] of routes) {
    if (!route.path.includes('{sandboxId}')) continue;
    // Grading makes another sandbox, on whichever edge has room.
    expect([id, route.home]).toEqual([id, id === 'gradeSandbox' ? 'apiserver' : 'edge']);
    expect(route.path.startsWith('/v1/sandboxes/{sandboxId}')).toBe(true);
  }
});

test('only what tells nothing of anybody needs no key', () => {
  const open = routes.filter(([, route]) => route.operationClass === 'none').map(([id]) => id);
  expect(open).toEqual(['getHealth', 'getVersion', 'getOpenApi']);
});
