import { compareFiles, type FileComparison } from './compare-files.ts';
import { SECTIONS, type Section } from './document.ts';
import { coversRule } from './network-rule.ts';
import type { Policy, SyscallDenial } from './policy.ts';

export interface Loosening {
  readonly section: Section | 'require';
  /** What is allowed that was not, for people and with one example. */
  readonly what: string;
  /** Of the rule that allows it; absent where the lack of a rule does. */
  readonly field?: string;
}

export interface PolicyChange {
  /** Nothing is allowed that was not: a switch that needs no further right. */
  readonly isTightening: boolean;
  /** At most some of each section. Empty and no tightening: too much differs to prove that it is one. */
  readonly loosenings: readonly Loosening[];
  /** Patterns of what could be read and no longer can. */
  readonly hides: readonly string[];
  /**
   * Where something is taken away that processes keep which have it: open files and mappings, sockets,
   * capabilities, the filter of system calls that they were started with.
   */
  readonly outlived: readonly Section[];
  /** What runs must end for the new policy to hold. Never for the network alone, which is cut at once. */
  readonly endsSessions: boolean;
}

/**
 * What a switch from one policy to another means. Never calls a loosening a tightening; where it cannot
 * prove a tightening within its bounds it says so by calling it none.
 */
export function comparePolicies(old: Policy, next: Policy): PolicyChange {
  const files = compareFiles(old.files, next.files);
  const loosenings: Loosening[] = [
    ...files.loosenings.map(
      ({ path, gains, rule }): Loosening => ({
        section: 'files',
        what: `${gains.join(', ')} ${path}`,
        ...(rule !== undefined && { field: rule.source.field }),
      }),
    ),
    ...socketLoosenings(old, next),
    ...networkLoosenings(old, next),
    ...moreOf(
      'capabilities',
      old.capabilities.items,
      next.capabilities.items,
      next.capabilities.source.field,
    ),
    ...moreOf('devices', old.devices.items, next.devices.items, next.devices.source.field),
    ...syscallLoosenings(old.syscalls, next.syscalls),
    ...moreOf('require', next.require, old.require).map((one) => ({
      ...one,
      what: `${one.what} is no longer required`,
    })),
  ];
  const outlived = outlivedOf(old, next, files);
  return {
    isTightening: files.isDecided && loosenings.length === 0,
    loosenings,
    hides: files.hiding.map(({ glob }) => glob.text),
    outlived,
    endsSessions: outlived.length > 0,
  };
}

function outlivedOf(old: Policy, next: Policy, files: FileComparison): Section[] {
  const taken: Partial<Record<Section, boolean>> = {
    // Not decided: something may be taken away that was not found.
    files: files.loses.size > 0 || !files.isDecided,
    sockets: socketLoosenings(next, old).length > 0,
    capabilities:
      moreOf('capabilities', next.capabilities.items, old.capabilities.items).length > 0,
    devices: moreOf('devices', next.devices.items, old.devices.items).length > 0,
    syscalls: syscallLoosenings(next.syscalls, old.syscalls).length > 0,
  };
  return SECTIONS.filter((section) => taken[section] === true);
}

function moreOf(
  section: Loosening['section'],
  old: readonly string[],
  next: readonly string[],
  field?: string,
): Loosening[] {
  return next
    .filter((item) => !old.includes(item))
    .map((what) => ({ section, what, ...(field !== undefined && { field }) }));
}

function socketLoosenings(old: Policy, next: Policy): Loosening[] {
  const kindsOf = (policy: Policy) =>
    policy.sockets.items.flatMap(({ family, types }) => types.map((type) => `${family} ${type}`));
  return moreOf('sockets', kindsOf(old), kindsOf(next), next.sockets.source.field);
}

function networkLoosenings(old: Policy, next: Policy): Loosening[] {
  return next.network.items
    .filter(({ rule }) => !old.network.items.some((known) => coversRule(known.rule, rule)))
    .map(({ rule, source }) => ({
      section: 'network',
      what: `${rule.kind} ${rule.target}`,
      field: source.field,
    }));
}

/** What was denied must be denied by one that asks for no more. */
function syscallLoosenings(
  old: readonly SyscallDenial[],
  next: readonly SyscallDenial[],
): Loosening[] {
  return old
    .filter(
      (denial) => !next.some((other) => other.call === denial.call && asksNoMore(other, denial)),
    )
    .map(({ call, when }) => ({
      section: 'syscalls',
      what: when.length === 0 ? call : `${call}, with some arguments`,
    }));
}

function asksNoMore(other: SyscallDenial, denial: SyscallDenial): boolean {
  return other.when.every(({ argument, equals, mask }) =>
    denial.when.some((known) => {
      const isLooked = (known.mask & mask) >>> 0 === mask >>> 0;
      return (
        known.argument === argument && isLooked && (known.equals & mask) >>> 0 === equals >>> 0
      );
    }),
  );
}
