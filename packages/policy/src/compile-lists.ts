import { MOUNT_BITS, type MountFields, type NetworkRule } from '@dsec/protocol';
import type { Compiled, PolicyFacts, RuleRef } from './compiled.ts';
import type { Mechanism } from './document.ts';
import { CAPABILITIES, CAPABILITY_BITS, DEVICE_NAMES, DEVICES, type Device } from './platform.ts';
import type { Policy } from './policy.ts';

export interface DeviceRule {
  readonly type: 'char';
  readonly major: number;
  /** -1: every one. */
  readonly minor: number;
  /** Nothing is ever made: no `mknod`. */
  readonly access: 'read-write';
}

export interface CompiledDevices {
  /** What may be opened; everything else may not. Empty where nothing judges devices. */
  readonly rules: readonly DeviceRule[];
  /** Instead of rules: what is taken away is covered. */
  readonly masks: readonly MountFields[];
}

/** The devices of the platform that the policy leaves. */
export function compileDevices(policy: Policy, facts: PolicyFacts): Compiled<CompiledDevices> {
  const { items, source } = policy.devices;
  const taken = DEVICE_NAMES.filter((name) => !items.includes(name));
  const rule: RuleRef = {
    section: 'devices',
    source,
    text: `devices: ${items.length === 0 ? 'none' : items.join(' ')}`,
  };
  if (facts.deviceRules === 'none') {
    const by = 'mounts' as const;
    return {
      output: { rules: [], masks: taken.flatMap((name) => masksOf(name, taken)) },
      enforced: [{ rule, by }],
      notEnforced: [],
    };
  }
  const rules = items.map((name): DeviceRule => {
    const { major, minor } = DEVICES[name];
    return { type: 'char', major, minor, access: 'read-write' };
  });
  return {
    output: { rules, masks: [] },
    enforced: [{ rule, by: 'device-rules' }],
    notEnforced: [],
  };
}

/** `/dev/ptmx` is a link into the terminals, and goes with them. */
function masksOf(name: Device, taken: readonly Device[]): MountFields[] {
  if (name === 'ptmx' && taken.includes('pts')) return [];
  const { nosuid, nodev, noexec } = MOUNT_BITS;
  const path = name === 'ptmx' ? '/dev/pts/ptmx' : DEVICES[name].path;
  return [{ kind: 'mask', target: Buffer.from(path), flags: nosuid | nodev | noexec }];
}

export interface CompiledCapabilities {
  /** Bit n is capability n; never more than the platform's. */
  readonly mask: bigint;
}

/** What root inside may keep. All of the platform's needs nobody to take anything. */
export function compileCapabilities(
  policy: Policy,
  facts: PolicyFacts,
): Compiled<CompiledCapabilities> {
  const { items, source } = policy.capabilities;
  const kept = CAPABILITIES.filter((name) => items.includes(name));
  const mask = kept.reduce((sum, name) => sum | (1n << BigInt(CAPABILITY_BITS[name])), 0n);
  const rule: RuleRef = {
    section: 'capabilities',
    source,
    text: `capabilities: ${kept.length === 0 ? 'none' : kept.join(' ')}`,
  };
  const by = 'agent' as const;
  const isEnforced = facts.hasSessionCapabilities || kept.length === CAPABILITIES.length;
  const why = 'aether gives sessions all that the platform has';
  return {
    output: { mask },
    enforced: isEnforced ? [{ rule, by }] : [],
    notEnforced: isEnforced ? [] : [{ rule, by, why }],
  };
}

/**
 * The rules as they are: what becomes of them is the network's. Without any, a sandbox has a loopback and
 * nothing else, on every node.
 */
export function compileNetwork(
  policy: Policy,
  facts: PolicyFacts,
): Compiled<readonly NetworkRule[]> {
  const { items, source } = policy.network;
  const by: Mechanism = 'network';
  const output = items.map(({ rule }) => rule);
  const refs: RuleRef[] =
    items.length === 0
      ? [{ section: 'network', source, text: 'network: loopback only' }]
      : items.map((item) => ({
          section: 'network',
          source: item.source,
          text: networkText(item.rule),
        }));
  if (items.length > 0 && facts.network === 'none') {
    const why = 'this node has neither BPF nor nftables for packets: nothing can be reached';
    return { output: [], enforced: [], notEnforced: refs.map((rule) => ({ rule, by, why })) };
  }
  const note = facts.network === 'nftables' ? 'by nftables, without the process in denials' : '';
  const enforced = refs.map((rule) => ({ rule, by, ...(note !== '' && { note }) }));
  return { output, enforced, notEnforced: [] };
}

export function networkText({ kind, target, ports = [], protocol }: NetworkRule): string {
  const where = ports.length === 0 ? '' : ` port ${ports.join(' ')}`;
  return `${kind} ${target}${where}${protocol === undefined ? '' : ` ${protocol}`}`;
}
