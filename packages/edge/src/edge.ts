/** An edge, put together: its sandboxes, and what the public routes of existing sandboxes need. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Backend } from '@dsec/backend';
import type { DoctorReport, Health } from '@dsec/protocol';
import type { ProjectId } from '@dsec/std';
import { addAuditMetrics } from './audit/audit-metrics.ts';
import { createWatchedPaths } from './audit/watched-paths.ts';
import { type EdgeCore, type EdgeCoreOptions, openEdgeCore } from './edge-core.ts';
import { type Agents, createAgents } from './exec/agents.ts';
import type { CommandLimits } from './exec/commands.ts';
import { createExecServices, type ExecServices } from './exec/exec-services.ts';
import { createFiles } from './files/files.ts';
import { createEdgeHandlers } from './http/edge-handlers.ts';
import { createEdgeMetrics, type EdgeMetrics } from './http/edge-metrics.ts';
import type { EdgeHandlers } from './http/handlers.ts';
import { addLifecycleMetrics } from './lifecycle/lifecycle-metrics.ts';
import { writeResolver } from './network/resolver-file.ts';
import { createPorts } from './ports/ports.ts';
import type { Sandboxes } from './sandboxes.ts';

export interface EdgeOptions extends Omit<EdgeCoreOptions, 'openAgents'> {
  /** Of DSec. */
  readonly version: string;
  readonly doctor: (signal: AbortSignal) => Promise<DoctorReport>;
  /** Callers of this project see the events of all. */
  readonly platformProject?: ProjectId | undefined;
  readonly commands?: Partial<CommandLimits>;
}

export interface Edge extends EdgeCore {
  readonly exec: ExecServices;
  /** For `startEdgeServer`. */
  readonly handlers: EdgeHandlers;
  readonly metrics: EdgeMetrics;
}

/**
 * Opens an edge on its state root and makes true what its journal says; then it can serve. Rejects with
 * `conflict` while another edge has the root, and with whatever keeps the backend from running sandboxes or
 * from saying which there are.
 */
export async function openEdge(options: EdgeOptions, signal: AbortSignal): Promise<Edge> {
  const { clock, random } = options;
  const late: { agents?: Agents; sandboxes?: Sandboxes } = {};
  const core = await openEdgeCore({
    ...options,
    openAgents(backend, epoch) {
      late.agents = createAgents({
        ...{ dial: backend.dial, epoch, random, clock },
        onFault(key, reason, error) {
          const entry = late.sandboxes?.find(key.id);
          const isSame = entry?.generation === key.generation;
          if (isSame && entry.state === 'running') late.sandboxes?.fail(entry, reason, error);
        },
      });
      const { agents } = late;
      return {
        ...agents,
        async setResolver(key, address, linkSignal) {
          const link = await agents.link(key, linkSignal);
          const dial = (dialSignal?: AbortSignal) => backend.dial(key, dialSignal);
          await writeResolver(link, dial, random, address, linkSignal);
        },
        async setRules(key, rules, linkSignal) {
          const link = await agents.link(key, linkSignal);
          await link.request('session-rules', rules, linkSignal);
        },
        async quiesce(key, linkSignal) {
          const link = await agents.link(key, linkSignal);
          await link.request('quiesce', {}, linkSignal);
        },
      };
    },
  });
  late.sandboxes = core.sandboxes;
  try {
    return await complete(options, core, late.agents as Agents, signal);
  } catch (thrown) {
    await core.close();
    throw thrown;
  }
}

async function complete(
  options: EdgeOptions,
  core: EdgeCore,
  agents: Agents,
  signal: AbortSignal,
): Promise<Edge> {
  const { sandboxes, backend } = core;
  const { clock, random, version, doctor, platformProject, commands } = options;
  const spoolRoot = join(options.stateRoot, 'spool');
  mkdirSync(spoolRoot, { recursive: true, mode: 0o700 });
  const exec = createExecServices({
    ...{ ...core, agents, clock, random, spoolRoot },
    oomKills: async ({ key }) => (await backend.stats(key)).oomKills ?? 0,
    ...(commands === undefined ? {} : { limits: commands }),
  });
  const watchedPaths = createWatchedPaths({
    ...{ ...core, agents, random, clock },
    onFault: (sandbox, err) =>
      options.log.warn({ sandbox, err }, 'watched paths could not be looked at'),
  });
  await core.recover(signal);
  exec.recover();
  const metrics = createEdgeMetrics(() => sandboxes.list());
  addLifecycleMetrics(metrics.registry, sandboxes);
  addAuditMetrics(metrics.registry, core.audit);
  const handlers = createEdgeHandlers({
    ...{ ...core, agents, random, exec, metrics, version, doctor, platformProject, watchedPaths },
    backend: { stats: (key) => usageOf(backend, key) },
    files: createFiles({ ...core, agents, random }),
    ports: createPorts({ sandboxes, agents }),
    state: core.state,
    health: () => healthOf(core),
  });
  const close = () => {
    watchedPaths.close();
    return core.close();
  };
  return { ...core, close, exec, handlers, metrics };
}

/** What the API calls usage: not why processes died. */
async function usageOf(backend: Backend, key: Parameters<Backend['stats']>[0]) {
  const { oomKills: _, ...usage } = await backend.stats(key);
  return usage;
}

function healthOf({ journal, state }: EdgeCore): Health {
  const { load } = state({ limit: 1 });
  const refusal = load.refusal === undefined ? {} : { detail: load.refusal };
  return {
    ok: journal.db.open,
    parts: [
      { name: 'journal', ok: journal.db.open },
      { name: 'admission', ok: load.admitting, ...refusal },
    ],
  };
}
