import type { MountFields, NetworkRule } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import { type AppArmorProfile, compileAppArmor } from './compile-apparmor.ts';
import { compileLandlock, type LandlockRuleset } from './compile-landlock.ts';
import {
  type CompiledCapabilities,
  type CompiledDevices,
  compileCapabilities,
  compileDevices,
  compileNetwork,
} from './compile-lists.ts';
import { compileMounts } from './compile-mounts.ts';
import { compileSeccomp, type SeccompDenial } from './compile-seccomp.ts';
import {
  type Compiled,
  type Enforcement,
  fileRef,
  type PolicyFacts,
  type RuleRef,
} from './compiled.ts';
import { type Mechanism, type Requirement, SECTIONS, type Verb } from './document.ts';
import type { Policy } from './policy.ts';

/** What one rule comes to on a node, by all mechanisms together. */
export interface RuleProtection {
  readonly rule: RuleRef;
  /** By every mechanism that enforces some of it. */
  readonly enforcements: readonly Enforcement[];
  /** Of a file rule: what nothing enforces. */
  readonly openVerbs: readonly Verb[];
  readonly isEnforced: boolean;
  /** Why not, by mechanism; empty when it is enforced. */
  readonly why: readonly string[];
}

export interface CompiledPolicy {
  readonly mounts: readonly MountFields[];
  readonly landlock: LandlockRuleset | undefined;
  readonly appArmor: AppArmorProfile | undefined;
  readonly seccomp: readonly SeccompDenial[];
  readonly devices: CompiledDevices;
  readonly capabilities: CompiledCapabilities;
  readonly network: readonly NetworkRule[];
  readonly protections: readonly RuleProtection[];
}

/** A policy for one node, and what of it holds there. Does not look at what the policy requires. */
export function compilePolicy(policy: Policy, facts: PolicyFacts): CompiledPolicy {
  const mounts = compileMounts(policy, facts);
  const landlock = compileLandlock(policy, facts);
  const appArmor = compileAppArmor(policy, facts);
  const seccomp = compileSeccomp(policy, facts);
  const devices = compileDevices(policy, facts);
  const capabilities = compileCapabilities(policy, facts);
  const network = compileNetwork(policy, facts);
  return {
    mounts: [...mounts.output, ...devices.output.masks],
    landlock: landlock.output,
    appArmor: appArmor.output,
    seccomp: seccomp.output,
    devices: devices.output,
    capabilities: capabilities.output,
    network: network.output,
    protections: protectionsOf(policy.files.map(fileRef), [
      ...[mounts, landlock, appArmor, seccomp, devices, capabilities, network],
    ]),
  };
}

/** The same, or `unsupported` when something is required that this node cannot enforce. */
export function enforcePolicy(policy: Policy, facts: PolicyFacts): CompiledPolicy {
  const compiled = compilePolicy(policy, facts);
  for (const requirement of policy.require) checkRequirement(requirement, compiled, facts);
  return compiled;
}

function protectionsOf(
  files: readonly RuleRef[],
  all: readonly Compiled<unknown>[],
): RuleProtection[] {
  const byRule = new Map<string, { rule: RuleRef; parts: Parts }>();
  const partsOf = (rule: RuleRef): Parts => {
    const key = `${rule.section} ${rule.source.origin} ${rule.source.field}`;
    const known = byRule.get(key);
    if (known !== undefined) return known.parts;
    const parts: Parts = { enforced: [], gaps: [] };
    byRule.set(key, { rule, parts });
    return parts;
  };
  // In the order of the policy.
  for (const rule of files) partsOf(rule);
  for (const { enforced, notEnforced } of all) {
    for (const one of enforced) partsOf(one.rule).enforced.push(one);
    for (const gap of notEnforced) partsOf(gap.rule).gaps.push(gap);
  }
  return [...byRule.values()].map(({ rule, parts }) => protectionOf(rule, parts));
}

interface Parts {
  readonly enforced: Compiled<never>['enforced'][number][];
  readonly gaps: Compiled<never>['notEnforced'][number][];
}

function protectionOf(rule: RuleRef, { enforced, gaps }: Parts): RuleProtection {
  const done = new Set(enforced.flatMap(({ verbs }) => verbs ?? []));
  const openVerbs = [
    ...new Set(gaps.flatMap(({ verbs }) => verbs ?? []).filter((verb) => !done.has(verb))),
  ];
  const isEnforced = rule.section === 'files' ? openVerbs.length === 0 : enforced.length > 0;
  const open = gaps.filter(
    ({ verbs }) => verbs === undefined || verbs.some((verb) => openVerbs.includes(verb)),
  );
  return {
    rule,
    enforcements: enforced,
    openVerbs,
    isEnforced,
    why: isEnforced ? [] : [...new Set(open.map(({ by, why }) => `${by}: ${why}`))],
  };
}

function checkRequirement(
  requirement: Requirement,
  { protections, landlock }: CompiledPolicy,
  facts: PolicyFacts,
): void {
  const refuse = (what: string, details: Record<string, string> = {}) => {
    throw new DsecError('unsupported', `this node cannot protect by ${requirement}: ${what}`, {
      details: { requirement, ...details },
    });
  };
  if ((SECTIONS as readonly string[]).includes(requirement)) {
    const open = protections.find(
      ({ rule, isEnforced }) => rule.section === requirement && !isEnforced,
    );
    if (open === undefined) return;
    const { text, source } = open.rule;
    const verbs = open.openVerbs.length === 0 ? '' : ` (${open.openVerbs.join(', ')})`;
    refuse(`${text}${verbs} is not enforced: ${open.why.join('; ')}`, {
      rule: text,
      field: source.field,
      origin: source.origin,
    });
  }
  const lack = lackOf(requirement as Mechanism, facts, landlock);
  if (lack !== undefined) refuse(lack);
}

function lackOf(
  mechanism: Mechanism,
  facts: PolicyFacts,
  landlock: LandlockRuleset | undefined,
): string | undefined {
  switch (mechanism) {
    case 'landlock':
      if (facts.landlockAbi === 0) return 'no Landlock in this kernel';
      return landlock === undefined ? 'nothing of this policy can be said in Landlock' : undefined;
    case 'apparmor':
      return facts.hasAppArmor ? undefined : 'AppArmor is off, or there is no apparmor_parser';
    case 'device-rules':
      return facts.deviceRules === 'none' ? 'nothing judges devices' : undefined;
    case 'agent':
      return facts.hasSessionCapabilities ? undefined : 'aether takes no capabilities by policy';
    default:
      return undefined;
  }
}
