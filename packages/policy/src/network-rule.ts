import { isIP, isIPv4 } from 'node:net';
import type { NetworkRule } from '@dsec/protocol';
import { DsecError } from '@dsec/std';

const ADDRESS_BITS = { 4: 32, 6: 128 } as const;

export interface Prefix {
  readonly version: 4 | 6;
  /** As many as the version has; those behind the length are 0. */
  readonly value: bigint;
  readonly length: number;
}

/** Throws `invalid-argument` with `details.field` when the target does not fit the kind of the rule. */
export function checkNetworkRule(rule: NetworkRule, field: string): void {
  const at = `${field}.target`;
  const refuse = (why: string): never => {
    throw new DsecError('invalid-argument', `${at}: ${why}`, { details: { field: at } });
  };
  if (rule.kind === 'address') {
    parsePrefix(rule.target, refuse);
  } else if (rule.kind === 'domain') {
    if (!isDomain(rule.target)) refuse('no domain: labels of a-z, 0-9, -, and `*.` only in front');
  } else if (!isLabelText(rule.target)) {
    refuse('no name of a service: a-z, 0-9, and - inside');
  }
}

function isDomain(target: string): boolean {
  const labels = (target.startsWith('*.') ? target.slice(2) : target).split('.');
  return labels.length >= 2 && labels.every(isLabelText) && isIP(target) === 0;
}

const ALPHABET = new Set('abcdefghijklmnopqrstuvwxyz0123456789-_');

function isLabelText(label: string): boolean {
  if (label === '' || label.length > 63 || label.startsWith('-') || label.endsWith('-'))
    return false;
  return [...label].every((character) => ALPHABET.has(character));
}

/** `10.0.0.0/8`, `2001:db8::/32`, or one address. */
export function parsePrefix(text: string, refuse: (why: string) => never): Prefix {
  const [address = '', lengthText, ...more] = text.split('/');
  const version = isIP(address);
  if ((version !== 4 && version !== 6) || more.length > 0) return refuse('no address range');
  const bits = ADDRESS_BITS[version];
  const length = lengthText === undefined ? bits : Number(lengthText);
  const isWritten = lengthText === undefined || String(length) === lengthText;
  if (!isWritten || !Number.isInteger(length) || length < 0 || length > bits) {
    return refuse(`the length of an address range is a number up to ${bits}`);
  }
  const value = version === 4 ? valueOf4(address) : valueOf6(address);
  const host = value & ((1n << BigInt(bits - length)) - 1n);
  if (host !== 0n) return refuse('an address range has no bits set behind its length');
  return { version, value, length };
}

const valueOf4 = (address: string) =>
  address.split('.').reduce((sum, part) => (sum << 8n) | BigInt(part), 0n);

function valueOf6(address: string): bigint {
  const [head = '', tail] = address.split('::');
  const front = groupsOf(head);
  const back = tail === undefined ? [] : groupsOf(tail);
  const zeros = new Array<bigint>(Math.max(0, 8 - front.length - back.length)).fill(0n);
  return [...front, ...zeros, ...back].reduce((sum, group) => (sum << 16n) | group, 0n);
}

function groupsOf(text: string): bigint[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => {
    if (!isIPv4(group)) return [BigInt(`0x${group}`)];
    const value = valueOf4(group);
    return [value >> 16n, value & 0xffffn];
  });
}

const neverRefuse = (why: string): never => {
  throw new DsecError('internal', `a checked rule: ${why}`);
};

/** Whether all that `narrow` lets through, `wide` does too. Errs on the side of `false`. */
export function coversRule(wide: NetworkRule, narrow: NetworkRule): boolean {
  if (wide.kind !== narrow.kind || !coversTarget(wide, narrow)) return false;
  if (wide.protocol !== undefined && wide.protocol !== narrow.protocol) return false;
  if (wide.ports === undefined || wide.ports.length === 0) {
    // Without ports, a name has those of the proxy; an address has all.
    return wide.kind === 'address' || narrow.ports === undefined || narrow.ports.length === 0;
  }
  const { ports } = narrow;
  return ports !== undefined && ports.length > 0 && ports.every((p) => wide.ports?.includes(p));
}

function coversTarget(wide: NetworkRule, narrow: NetworkRule): boolean {
  if (wide.kind === 'address') {
    const [a, b] = [parsePrefix(wide.target, neverRefuse), parsePrefix(narrow.target, neverRefuse)];
    if (a.version !== b.version || a.length > b.length) return false;
    const shift = BigInt(ADDRESS_BITS[a.version] - a.length);
    return a.value >> shift === b.value >> shift;
  }
  if (wide.target === narrow.target) return true;
  return wide.kind === 'domain' && wide.target.startsWith('*.')
    ? narrow.target.endsWith(wide.target.slice(1))
    : false;
}
