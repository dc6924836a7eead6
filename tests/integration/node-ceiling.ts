/** What all sandboxes of an edge can have of the host's processes together, as the kernel has it. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { cgroupDirectories } from './launcher-world.ts';

export interface NodeCeiling {
  /** As the launcher has set it. */
  readonly max: number;
  /** Processes of all sandboxes. */
  current(): number;
  /** Sets it to so many above what there is now. */
  lower(above: number): number;
  /** None, for what it does not bound then. */
  lift(): void;
}

export function nodeCeiling(edgeId: string): NodeCeiling {
  const directory = cgroupDirectories(edgeId).find((path) => existsSync(join(path, 'pids.max')));
  if (directory === undefined) throw new Error('nothing counts processes here');
  const read = (name: string) => Number(readFileSync(join(directory, name), 'utf8'));
  const set = (value: number | 'max') => writeFileSync(join(directory, 'pids.max'), `${value}`);
  const current = () => read('pids.current');
  return {
    max: read('pids.max'),
    current,
    lower(above) {
      const max = current() + above;
      set(max);
      return max;
    },
    lift: () => set('max'),
  };
}

/** What it is to be: a part of what the host can have. */
export function expectedCeiling(): number {
  const limits = ['pid_max', 'threads-max'].map((name) =>
    Number(readFileSync(`/proc/sys/kernel/${name}`, 'utf8')),
  );
  return Math.floor((Math.min(...limits) * 80) / 100);
}
