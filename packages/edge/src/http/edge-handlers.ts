import { DsecError } from '@dsec/std';
import type { ExecServices } from '../exec/exec-services.ts';
import type { Files } from '../files/files.ts';
import type { Ports } from '../ports/ports.ts';
import { UNSUPPORTED } from './edge-routes.ts';
import { createExecHandlers } from './exec-handlers.ts';
import { createFileHandlers } from './file-handlers.ts';
import type { EdgeHandlers } from './handlers.ts';
import { createPlatformHandlers, type PlatformHandlersOptions } from './platform-handlers.ts';
import { createSandboxHandlers, type SandboxHandlersOptions } from './sandbox-handlers.ts';

/** What stands behind the routes of an edge. */
export interface EdgeServices extends SandboxHandlersOptions, PlatformHandlersOptions {
  readonly exec: Pick<ExecServices, 'execs' | 'sessions' | 'readOutput' | 'attach'>;
  readonly files: Files;
  readonly ports: Ports;
}

/** A handler for every route of an edge: what it cannot do is `unsupported`, with the reason. */
export function createEdgeHandlers(services: EdgeServices): EdgeHandlers {
  return {
    ...createSandboxHandlers(services),
    ...createExecHandlers(services.exec),
    ...createFileHandlers(services.files, services.ports),
    ...createPlatformHandlers(services),
    rollbackSandbox: refuse(UNSUPPORTED.rollbackSandbox),
    createSnapshot: refuse(UNSUPPORTED.createSnapshot),
    packDiff: refuse(UNSUPPORTED.packDiff),
  };
}

function refuse(reason: string): () => Promise<never> {
  return async () => {
    throw new DsecError('unsupported', reason);
  };
}
