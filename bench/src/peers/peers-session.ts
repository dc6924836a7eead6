import type { BaseLayer } from '../base-layer.ts';
import { type MeasuredGroup, measureInGroup } from '../cgroups.ts';
import { startWorker, type Worker } from '../worker/worker-link.ts';
import type { PeersCommands, PeersWorkerOptions } from './peers-worker.ts';

export interface PeersSession {
  readonly peers: Worker<PeersCommands>;
  readonly names: readonly string[];
  /** Versions, and which are missing. */
  readonly notes: readonly string[];
  /** Of the driver, the peers and all that ran in their containers. */
  cpuMs(): number;
  close(): Promise<void>;
}

const KNOWN = ['crun', 'runc', 'bubblewrap'];

/** Peers are what is installed: none is needed. */
export async function openPeersSession(
  { metaPath, devices }: BaseLayer,
  signal: AbortSignal,
): Promise<PeersSession> {
  const cgroupName = `dsec-peers-${process.pid}`;
  const options: PeersWorkerOptions = { metaPath, devices, cgroupName };
  const peers = await startWorker<PeersCommands>('peers', options, signal);
  let group: MeasuredGroup | undefined;
  const close = async () => {
    await peers.close();
    group?.remove();
  };
  try {
    group = measureInGroup(cgroupName, peers.pid);
    const found = await peers.call('describe', undefined);
    const names = found.map(({ name }) => name);
    const missing = KNOWN.filter((name) => !names.includes(name));
    const notes = [`peers: ${found.map(({ version }) => version).join('; ') || 'none'}`];
    if (missing.length > 0) {
      notes.push(`not installed, so not measured: ${missing.join(', ')} (packages of those names)`);
    }
    return { ...{ peers, names, notes, close }, cpuMs: group.cpuMs };
  } catch (thrown) {
    await close();
    throw thrown;
  }
}
