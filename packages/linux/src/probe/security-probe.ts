import { existsSync, readFileSync } from 'node:fs';
import { probeBpf, probeLandlock } from './kernel-probe.ts';

/** What policies can be enforced with here. */
export interface SecurityFacts {
  /** Version of Landlock's interface; 0 where there is none. */
  readonly landlockAbi: number;
  /** AppArmor is on, and there is a program to load profiles with. */
  readonly hasAppArmor: boolean;
  readonly deviceRules: 'bpf' | 'cgroup1' | 'none';
  readonly network: 'bpf' | 'nftables' | 'none';
}

/** Tries what can be tried, and leaves nothing behind. What may not be tried counts as not there. */
export function probeSecurity(): SecurityFacts {
  const bpf = probeBpf();
  const loads = (kind: keyof typeof bpf) => bpf[kind].state === 'works';
  const hasController = /^devices\t.*\t1$/m.test(readText('/proc/cgroups'));
  return {
    landlockAbi: probeLandlock().abi ?? 0,
    hasAppArmor:
      readText('/sys/module/apparmor/parameters/enabled').trim() === 'Y' &&
      hasProgram('apparmor_parser'),
    deviceRules: loads('cgroup_device') ? 'bpf' : hasController ? 'cgroup1' : 'none',
    network: loads('sched_cls') ? 'bpf' : hasProgram('nft') ? 'nftables' : 'none',
  };
}

const hasProgram = (name: string) =>
  ['/usr/sbin', '/sbin', '/usr/bin'].some((directory) => existsSync(`${directory}/${name}`));

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
