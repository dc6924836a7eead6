import { type OperationId, ROUTES, type Route, type RouteOf } from '@dsec/protocol';

/** The operations that an edge has a part in: everything on existing sandboxes, and on itself. */
export type EdgeOperation = {
  [Id in OperationId]: RouteOf<Id>['home'] extends 'apiserver' ? never : Id;
}[OperationId];

export type EdgeRoutes = Pick<typeof ROUTES, EdgeOperation>;

/** The public routes that an edge serves, under their public names: there is no second API. */
export const EDGE_ROUTES = Object.fromEntries(
  Object.entries(ROUTES as Readonly<Record<string, Route>>).filter(
    ([, { home }]) => home !== 'apiserver',
  ),
) as unknown as EdgeRoutes;

/** Operations of an edge that it refuses, with the reason. */
export const UNSUPPORTED = {
  rollbackSandbox: 'this edge takes no snapshots',
  createSnapshot: 'this edge takes no snapshots',
  packDiff: 'this edge packs no diffs',
} as const satisfies { readonly [Id in EdgeOperation]?: string };
