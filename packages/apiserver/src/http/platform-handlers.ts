import { buildOpenApi, FRAME_VERSION, type Health } from '@dsec/protocol';
import type { ApiHandlers } from './handlers.ts';

export interface PlatformHandlersOptions {
  /** Of DSec. */
  readonly version: string;
  readonly health: () => Promise<Health>;
}

export function createPlatformHandlers({
  version,
  health,
}: PlatformHandlersOptions): Pick<ApiHandlers, 'getHealth' | 'getVersion' | 'getOpenApi'> {
  const openApi = JSON.stringify(buildOpenApi(version));
  return {
    getHealth: health,
    getVersion: async () => ({ version, api: 'v1', frames: FRAME_VERSION }),
    getOpenApi: async () => openApi,
  };
}
