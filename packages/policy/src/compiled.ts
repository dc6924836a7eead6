import type { Mechanism, Section, Verb } from './document.ts';
import type { FileRule, Source } from './policy.ts';

/**
 * What a policy depends on beside itself: facts of the node, and of the image where they are known.
 * Compilers are functions of a policy and these.
 */
export interface PolicyFacts {
  /** Version of Landlock's interface; 0 where there is none. */
  readonly landlockAbi: number;
  /** AppArmor is on, and so is the program that loads profiles. */
  readonly hasAppArmor: boolean;
  /** What judges devices: programs of cgroups, the controller of version 1, or nothing. */
  readonly deviceRules: 'bpf' | 'cgroup1' | 'none';
  /** What judges packets; with nothing, a sandbox has a loopback and no more. */
  readonly network: 'bpf' | 'nftables' | 'none';
  /** aether takes capabilities from sessions as it is told, beyond those that it always takes. */
  readonly hasSessionCapabilities: boolean;
  /** The platform's tools are mounted at `/.dsec`. */
  readonly hasToolMount: boolean;
  /** Names that the filter of system calls knows; absent: all are taken as known. */
  readonly systemCalls?: ReadonlySet<string>;
  /** What the image has at a path, without following links; absent: `unknown`. */
  readonly kindOf?: (path: string) => PathKind;
}

export type PathKind = 'directory' | 'file' | 'link' | 'absent' | 'unknown';

/** A node without anything optional. */
export const BARE_FACTS: PolicyFacts = {
  landlockAbi: 0,
  hasAppArmor: false,
  deviceRules: 'none',
  network: 'none',
  hasSessionCapabilities: false,
  hasToolMount: false,
};

/** A rule, as reports name it. */
export interface RuleRef {
  readonly section: Section;
  readonly source: Source;
  /** `/answers: hide`, `syscall ptrace`. */
  readonly text: string;
}

export interface Enforcement {
  readonly rule: RuleRef;
  /** Of a file rule: which of its denials. */
  readonly verbs?: readonly Verb[];
  readonly by: Mechanism;
  readonly note?: string;
}

export interface Gap {
  readonly rule: RuleRef;
  readonly verbs?: readonly Verb[];
  readonly by: Mechanism;
  readonly why: string;
}

/** `output` never denies what the policy allows but for what `docs/guides/policy.md` names. */
export interface Compiled<T> {
  readonly output: T;
  readonly enforced: readonly Enforcement[];
  readonly notEnforced: readonly Gap[];
}

export function fileRef({ glob, denied, isHidden, source }: FileRule): RuleRef {
  const allowed = (['read', 'write', 'exec'] as const).filter((verb) => !denied.has(verb));
  return {
    section: 'files',
    source,
    text: `${glob.text}: ${isHidden ? 'hide' : allowed.join(' ') || 'nothing'}`,
  };
}

/** What each rule's denials come to by one mechanism: `judge` gives a reason where it does not hold. */
export function judgeFileRules(
  by: Mechanism,
  rules: readonly FileRule[],
  judge: (rule: FileRule, verb: Verb) => string | undefined,
  noteOf: (rule: FileRule) => string | undefined = () => undefined,
): Pick<Compiled<never>, 'enforced' | 'notEnforced'> {
  const enforced: Enforcement[] = [];
  const notEnforced: Gap[] = [];
  for (const one of rules) {
    const byReason = new Map<string | undefined, Verb[]>();
    for (const verb of one.denied) {
      const why = judge(one, verb);
      byReason.set(why, [...(byReason.get(why) ?? []), verb]);
    }
    const rule = fileRef(one);
    for (const [why, verbs] of byReason) {
      const note = noteOf(one);
      if (why === undefined) enforced.push({ rule, verbs, by, ...(note && { note }) });
      else notEnforced.push({ rule, verbs, by, why });
    }
  }
  return { enforced, notEnforced };
}
