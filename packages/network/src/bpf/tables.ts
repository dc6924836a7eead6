import { closeSync } from 'node:fs';
import {
  createBpfMap,
  deleteFromBpfMap,
  keysOfBpfMap,
  lookUpInBpfMap,
  openBpfMapById,
  updateBpfMap,
  updateBpfMapBatch,
} from '@dsec/linux';
import { DsecError } from '@dsec/std';
import {
  encodeRule,
  encodeRuleKey,
  RULE_BYTES,
  RULE_KEY_BYTES,
  type RuleEntry,
  tableOfRuleKey,
  uint32,
} from './layout.ts';
import type { LoadedObjects } from './objects.ts';

/**
 * The tries that hold the rules, one for each slot. A trie is made once and used again by whoever gets the
 * slot next, since to put one into its place waits for a grace period of the kernel: milliseconds, so
 * tries are made for several slots at once. In a trie the tables of one slot lie beside each other.
 */
export interface RuleTables {
  /** Sees to it that the slot has a trie. Takes milliseconds for one slot in `SLOTS_AT_ONCE`. */
  prepare(slot: number): void;
  /** Adds entries to a table. Entries that exist are replaced. On failure the table may have some. */
  write(slot: number, table: number, entries: readonly RuleEntry[]): void;
  /** Removes everything but this table. Returns how many entries went. */
  keepOnly(slot: number, table: number): number;
  remove(slot: number, table: number, entry: Pick<RuleEntry, 'prefix'>): void;
}

const SLOTS_AT_ONCE = 64;

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

  function prepare(slot: number): void {
    const id = Buffer.alloc(4);
    if (lookUpInBpfMap(outer.fd, uint32(slot), id)) return;
    const first = slot - (slot % SLOTS_AT_ONCE);
    const last = Math.min(first + SLOTS_AT_ONCE, outer.entriesMax);
    const slots = Array.from({ length: last - first }, (_, i) => uint32(first + i));
    const missing = slots.filter((key) => !lookUpInBpfMap(outer.fd, key, id));
    const tries: number[] = [];
    try {
      for (const _ of missing) tries.push(createBpfMap({ ...inner, name: 'rules_of_slot' }));
      const values = Buffer.concat(tries.map(uint32));
      updateBpfMapBatch(outer.fd, Buffer.concat(missing), values, missing.length);
    } finally {
      for (const fd of tries) closeSync(fd);
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
      for (const key of old) deleteFromBpfMap(fd, key);
      return old.length;
    });
  }

  function remove(slot: number, table: number, { prefix }: Pick<RuleEntry, 'prefix'>): void {
    withTrie(slot, (fd) => deleteFromBpfMap(fd, encodeRuleKey(table, prefix)));
  }
  return { prepare, write, keepOnly, remove };
}

/** A map by its name in the objects. */
export function mapOf(objects: LoadedObjects, name: string) {
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
