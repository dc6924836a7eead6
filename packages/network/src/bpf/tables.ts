import { closeSync } from 'node:fs';
import {
  createBpfMap,
  deleteBpfMapBatch,
  deleteFromBpfMap,
  keysOfBpfMap,
  lookUpInBpfMap,
  openBpfMapById,
  updateBpfMap,
  updateBpfMapBatch,
} from '@dsec/linux';
import { DsecError } from '@dsec/std';
import type { Prefix } from '../rules/address.ts';
import {
  decodeRule,
  encodeRule,
  encodeRuleKey,
  prefixOfRuleKey,
  RULE_BYTES,
  RULE_KEY_BYTES,
  type RuleEntry,
  tableOfRuleKey,
  uint32,
} from './layout.ts';
import type { LoadedMap, LoadedObjects } from './objects.ts';

/**
 * The tries that hold the rules, one for each slot. All are made at the first start and used again by
 * whoever gets the slot next: to put one into its place waits for a grace period of the kernel. In a trie
 * the tables of one slot lie beside each other.
 */
export interface RuleTables {
  /** Adds entries to a table. Entries that exist are replaced. On failure the table may have some. */
  write(slot: number, table: number, entries: readonly RuleEntry[]): void;
  /** Removes everything but this table. Returns how many entries went. */
  keepOnly(slot: number, table: number): number;
  /** Removes entries of a table, all of which are there. */
  clear(slot: number, table: number, prefixes: readonly Prefix[]): void;
  /** What a table holds. */
  read(slot: number, table: number): RuleEntry[];
}

/** Tries, and so descriptors, that one grace period is for. */
const SLOTS_AT_ONCE = 256;

/** Makes the tries that are not there yet: some milliseconds for each `SLOTS_AT_ONCE` of them. */
export function createRuleTables(objects: LoadedObjects): RuleTables {
  const outer = mapOf(objects, 'rules');
  const inner = mapOf(objects, 'rules_inner');

  function withTrie<Result>(slot: number, work: (fd: number) => Result): Result {
    const id = Buffer.alloc(4);
    if (!lookUpInBpfMap(outer.fd, uint32(slot), id)) {
      throw new DsecError('internal', `slot ${slot} has no trie of rules`);
    }
    const fd = openBpfMapById(id.readUInt32LE());
    try {
      return work(fd);
    } finally {
      closeSync(fd);
    }
  }

  function write(slot: number, table: number, entries: readonly RuleEntry[]): void {
    if (entries.length === 0) return;
    const keys = Buffer.alloc(entries.length * RULE_KEY_BYTES);
    const values = Buffer.alloc(entries.length * RULE_BYTES);
    for (const [index, { prefix, ranges }] of entries.entries()) {
      encodeRuleKey(table, prefix).copy(keys, index * RULE_KEY_BYTES);
      encodeRule(ranges).copy(values, index * RULE_BYTES);
    }
    withTrie(slot, (fd) => updateBpfMapBatch(fd, keys, values, entries.length));
  }

  function keepOnly(slot: number, table: number): number {
    return withTrie(slot, (fd) => {
      const keys = keysOfBpfMap(fd, RULE_KEY_BYTES, inner.entriesMax);
      const old = keys.filter((key) => tableOfRuleKey(key) !== table);
      deleteBpfMapBatch(fd, Buffer.concat(old), old.length);
      return old.length;
    });
  }

  function clear(slot: number, table: number, prefixes: readonly Prefix[]): void {
    const keys = Buffer.concat(prefixes.map((prefix) => encodeRuleKey(table, prefix)));
    withTrie(slot, (fd) => deleteBpfMapBatch(fd, keys, prefixes.length));
  }

  function read(slot: number, table: number): RuleEntry[] {
    return withTrie(slot, (fd) => {
      const value = Buffer.alloc(RULE_BYTES);
      return keysOfBpfMap(fd, RULE_KEY_BYTES, inner.entriesMax)
        .filter((key) => tableOfRuleKey(key) === table && lookUpInBpfMap(fd, key, value))
        .map((key) => {
          lookUpInBpfMap(fd, key, value);
          return { prefix: prefixOfRuleKey(key), ranges: decodeRule(value) };
        });
    });
  }

  makeMissingTries(outer, inner);
  return { write, keepOnly, clear, read };
}

function makeMissingTries(outer: LoadedMap, inner: LoadedMap): void {
  const id = Buffer.alloc(4);
  const slots = Array.from({ length: outer.entriesMax }, (_, slot) => uint32(slot));
  const missing = slots.filter((key) => !lookUpInBpfMap(outer.fd, key, id));
  for (let at = 0; at < missing.length; at += SLOTS_AT_ONCE) {
    makeTries(outer, inner, missing.slice(at, at + SLOTS_AT_ONCE));
  }
}

function makeTries(outer: LoadedMap, inner: LoadedMap, slots: readonly Buffer[]): void {
  const tries: number[] = [];
  try {
    for (const _ of slots) tries.push(createBpfMap({ ...inner, name: 'rules_of_slot' }));
    const values = Buffer.concat(tries.map(uint32));
    updateBpfMapBatch(outer.fd, Buffer.concat(slots), values, slots.length);
  } finally {
    for (const fd of tries) closeSync(fd);
  }
}

/** A map by its name in the objects. */
export function mapOf(objects: LoadedObjects, name: string): LoadedMap {
  const map = objects.maps.get(name);
  if (map === undefined) throw new DsecError('data-loss', `BPF object: no map ${name}`);
  return map;
}

/** Makes a map hold exactly these keys: new ones first, so that nothing is missing meanwhile. */
export function syncKeys(mapFd: number, keys: readonly Buffer[], value: Buffer, max: number): void {
  const wanted = new Set(keys.map((key) => key.toString('hex')));
  for (const key of keys) updateBpfMap(mapFd, key, value);
  for (const key of keysOfBpfMap(mapFd, keys[0]?.length ?? 0, keys.length === 0 ? 0 : max)) {
    if (!wanted.has(key.toString('hex'))) deleteFromBpfMap(mapFd, key);
  }
}
