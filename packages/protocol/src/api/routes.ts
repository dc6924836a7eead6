import { EXEC_ROUTES } from './exec-routes.ts';
import { FILE_ROUTES } from './file-routes.ts';
import { GRADE_ROUTES } from './grade-routes.ts';
import { LAYER_ROUTES } from './layer-routes.ts';
import { PLATFORM_ROUTES } from './platform-routes.ts';
import { SANDBOX_ROUTES } from './sandbox-routes.ts';

/** Every route of the API by its operation id. */
export const ROUTES = {
  ...SANDBOX_ROUTES,
  ...EXEC_ROUTES,
  ...FILE_ROUTES,
  ...GRADE_ROUTES,
  ...LAYER_ROUTES,
  ...PLATFORM_ROUTES,
} as const;

export type OperationId = keyof typeof ROUTES;
export type RouteOf<Id extends OperationId> = (typeof ROUTES)[Id];
