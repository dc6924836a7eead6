/** What a create says of its policy, as this node enforces it: or why it cannot. Pure, and remembered. */
import type { BackendPolicies, PlannedPolicy, SessionPolicy } from '@dsec/backend';
import {
  type CompiledPolicy,
  enforcePolicy,
  type Policy,
  parsePolicy,
  type RuleProtection,
  resolvePolicy,
} from '@dsec/policy';
import type {
  NetworkRule,
  PolicyChoice,
  Protection,
  SessionRulesFields,
  Stage,
} from '@dsec/protocol';
import { CAPABILITIES } from '@dsec/protocol';
import { DsecError, KIB } from '@dsec/std';

export interface PolicyAsked {
  /** Absent: the default profile. */
  readonly choice: PolicyChoice | undefined;
  readonly stage: Stage | undefined;
  /** The platform's tools are mounted in the sandbox. */
  readonly hasTools: boolean;
  /** Rules that the node cannot enforce are told, and no error. */
  readonly allowDegraded: boolean;
}

export interface SettledPolicy {
  readonly policy: Policy;
  /** Absent: there is nothing for a backend to do. */
  readonly planned: PlannedPolicy | undefined;
  /** One for each section that has rules, beside the network: `policy-files`, ... */
  readonly protections: readonly Protection[];
  readonly network: readonly NetworkRule[];
}

export interface NodePolicies {
  /**
   * `invalid-argument` for what is no policy, with the field; `unsupported` with the rule that this node
   * cannot enforce.
   */
  settle(asked: PolicyAsked): SettledPolicy;
  /** What the agent of a sandbox is told. */
  rulesOf(policy: SettledPolicy): SessionRulesFields;
  /** Of the backend; absent where it enforces none. */
  readonly backend: BackendPolicies | undefined;
}

/** An inline document in a create: the journal keeps it for each sandbox. */
const DOCUMENT_BYTES_MAX = 64 * KIB;
const KEPT_MAX = 128;
export const DEFAULT_PROFILE = 'default';
const DETAIL_LENGTH_MAX = 512;

export function createNodePolicies(backend: BackendPolicies | undefined): NodePolicies {
  const kept = new Map<string, SettledPolicy>();
  return {
    backend,
    settle(asked) {
      const key = JSON.stringify([asked.choice, asked.stage, asked.hasTools, asked.allowDegraded]);
      const known = kept.get(key);
      if (known !== undefined) return known;
      const settled = settlePolicy(asked, backend, key.length);
      kept.set(key, settled);
      const [oldest] = kept.keys();
      if (kept.size > KEPT_MAX && oldest !== undefined) kept.delete(oldest);
      return settled;
    },
    rulesOf({ planned }) {
      const sessions = planned?.sessions ?? { capabilities: ALL_CAPABILITIES, denials: [] };
      return backend?.rulesOf(sessions) ?? NO_RULES;
    },
  };
}

/** Those of the platform are taken away whatever is said here. */
const ALL_CAPABILITIES = 2 ** 32 - 1;
const NO_RULES: SessionRulesFields = {
  ...{ capabilities: ALL_CAPABILITIES, handledAccess: 0, trees: [] },
};

function settlePolicy(
  { choice, stage, hasTools, allowDegraded }: PolicyAsked,
  backend: BackendPolicies | undefined,
  bytes: number,
): SettledPolicy {
  if (bytes > DOCUMENT_BYTES_MAX) {
    throw new DsecError('too-large', `a policy of more than ${DOCUMENT_BYTES_MAX} bytes`, {
      details: { field: 'policy' },
    });
  }
  const document =
    typeof choice === 'object'
      ? parsePolicy(choice)
      : ({ version: 1, extends: choice ?? DEFAULT_PROFILE } as const);
  const resolved = resolvePolicy(document, stage === undefined ? {} : { stage });
  // Where nothing is mounted apart, the profile has nothing to protect.
  const policy = hasTools ? resolved : withoutTools(resolved);
  const network = policy.network.items.map(({ rule }) => rule);
  if (backend === undefined) {
    return { policy, planned: undefined, protections: unenforced(choice, allowDegraded), network };
  }
  const facts = { ...backend.facts, hasToolMount: hasTools, network: 'bpf' } as const;
  const compiled = enforcePolicy(policy, facts);
  const open = compiled.protections.find(({ isEnforced }) => !isEnforced);
  if (open !== undefined && !allowDegraded) throw refusal(open);
  return { policy, planned: plannedOf(compiled), protections: protectionsOf(compiled), network };
}

const withoutTools = (policy: Policy): Policy => ({
  ...policy,
  files: policy.files.filter(
    ({ glob, source }) => glob.text !== '/.dsec' || !source.origin.startsWith('profile '),
  ),
});

function unenforced(choice: PolicyChoice | undefined, allowDegraded: boolean): Protection[] {
  if (choice === undefined || choice === 'open') return [];
  const detail = 'this backend enforces no policies';
  if (allowDegraded) return [{ name: 'policy', state: 'absent', detail }];
  throw new DsecError('unsupported', detail, { details: { field: 'policy' } });
}

function refusal({ rule, openVerbs, why }: RuleProtection): DsecError {
  const verbs = openVerbs.length === 0 ? '' : ` (${openVerbs.join(', ')})`;
  return new DsecError(
    'unsupported',
    `this node cannot enforce ${rule.text}${verbs}: ${why.join('; ')}; with allowDegraded it is let be`,
    { details: { field: 'policy', rule: rule.source.field, origin: rule.source.origin } },
  );
}

function plannedOf(compiled: CompiledPolicy): PlannedPolicy | undefined {
  const { mounts, landlock, seccomp, capabilities } = compiled;
  const kept = Number(capabilities.mask);
  const isWhole = CAPABILITIES.length === bitsOf(kept);
  const sessions: SessionPolicy | undefined =
    landlock === undefined && seccomp.length === 0 && isWhole
      ? undefined
      : { capabilities: kept, denials: seccomp, ...(landlock === undefined ? {} : { landlock }) };
  if (mounts.length === 0 && sessions === undefined) return undefined;
  return {
    mounts: mounts.flatMap(({ kind, target, flags }) =>
      kind === 'mask' || kind === 'readonly'
        ? [{ kind, target: Buffer.from(target).toString('latin1'), flags }]
        : [],
    ),
    ...(sessions === undefined ? {} : { sessions }),
  };
}

function bitsOf(mask: number): number {
  let count = 0;
  for (let rest = mask; rest > 0; rest = Math.floor(rest / 2)) count += rest % 2;
  return count;
}

/** Those of the network are told by whom enforces them. */
function protectionsOf({ protections }: CompiledPolicy): Protection[] {
  const sections = new Set(protections.map(({ rule }) => rule.section));
  sections.delete('network');
  return [...sections].map((section) => {
    const ofSection = protections.filter(({ rule }) => rule.section === section);
    const open = ofSection.filter(({ isEnforced }) => !isEnforced);
    const by = new Set(ofSection.flatMap(({ enforcements }) => enforcements.map((one) => one.by)));
    const state =
      open.length === 0 ? 'enforced' : open.length < ofSection.length ? 'degraded' : 'absent';
    const detail =
      open.length === 0
        ? `by ${[...by].join(', ') || 'nothing, as it denies nothing'}`
        : open.map(({ rule, why }) => `${rule.text}: ${why.join('; ')}`).join('. ');
    return { name: `policy-${section}`, state, detail: detail.slice(0, DETAIL_LENGTH_MAX) };
  });
}

const POLICY_PROTECTION = /^policy-/;
/** Without those that a policy is asked for, which the backend does not know. */
export const withoutPolicyProtections = (names: readonly string[]): string[] =>
  names.filter((name) => !POLICY_PROTECTION.test(name));

/** Throws `unsupported` where one that is required by name is not enforced, or not there. */
export function requirePolicies(
  protections: readonly Protection[],
  required: readonly string[],
): void {
  for (const name of required.filter((one) => POLICY_PROTECTION.test(one))) {
    const found = protections.find((protection) => protection.name === name);
    if (found?.state === 'enforced') continue;
    const why =
      found === undefined ? 'its policy has no such rules' : (found.detail ?? found.state);
    throw new DsecError('unsupported', `this node cannot protect by ${name}: ${why}`, {
      details: { protection: name },
    });
  }
}
