import type { CompiledNetwork, NameRule } from '@dsec/network';
import type { NetworkRule } from '@dsec/protocol';
import { DsecError } from '@dsec/std';

/**
 * What a node without a way out for packets keeps: names, through its proxies. Throws `unsupported` with
 * `details.field` for the rest, so that no rule is taken and does nothing.
 */
export function checkKept(
  rules: readonly NetworkRule[],
  compiled: CompiledNetwork,
  proxyPorts: readonly number[],
): void {
  const refuse = (field: string, why: string) =>
    new DsecError('unsupported', `${field}: ${why}`, { details: { field } });
  for (const [i, { kind }] of rules.entries()) {
    if (kind === 'address') {
      throw refuse(
        `network.${i}`,
        'packets have no way out of this node; open a name, or a service',
      );
    }
  }
  for (const rule of compiled.names) {
    const why = faultOf(rule, proxyPorts);
    if (why !== undefined) throw refuse('network', `${rule.service ?? rule.pattern}: ${why}`);
  }
}

function faultOf(rule: NameRule, proxyPorts: readonly number[]): string | undefined {
  const port = rule.ports.flat().find((one) => !proxyPorts.includes(one));
  if (rule.isDedicated) return 'packets have no way out of this node to a dedicated name';
  const endsTls =
    rule.inject !== undefined ||
    rule.isTerminated === true ||
    rule.asOf !== undefined ||
    rule.deny !== undefined;
  if (endsTls) return 'this node does not end TLS of sandboxes: they trust no authority of it';
  if (port !== undefined) {
    return `the egress proxy does not listen on port ${port}; a service of the operator's map adds it`;
  }
  return undefined;
}
