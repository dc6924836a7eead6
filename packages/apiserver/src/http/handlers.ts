import type { ROUTES } from '@dsec/protocol';
import type { RouteHandlers } from '@dsec/transport';
import type { Visitor } from './key-authorizer.ts';

export type ApiHandlers = RouteHandlers<typeof ROUTES, Visitor>;
