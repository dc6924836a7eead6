import { DsecError } from '@dsec/std';
import { formatPrefix, type Prefix } from '../rules/address.ts';
import type { CompiledNetwork } from '../rules/compiled.ts';
import { compileRules, type RuleSet } from './entries.ts';
import { createGrants, type DnsAddress } from './grants.ts';
import type { RuleEntry, SlotRecord } from './layout.ts';
import type { RuleTables } from './tables.ts';

/** The rules of one slot: which table is in force, and how another one comes into force. */
export interface SandboxSlot {
  readonly record: SlotRecord;
  setRules(network: CompiledNetwork): void;
  addDnsAddresses(version: number, addresses: readonly DnsAddress[]): void;
}

export interface SlotSeams {
  readonly slot: number;
  readonly tables: RuleTables;
  /** Entries of one table. */
  readonly entriesMax: number;
  /** Puts a record into force. */
  store(record: SlotRecord): void;
  nowNs(): bigint;
}

const VERSION_MAX = 0xffff_ffff;

export function createSandboxSlot(first: SlotRecord, seams: SlotSeams): SandboxSlot {
  const { slot, tables, entriesMax } = seams;
  const grants = createGrants();
  let record = first;
  let rules: RuleSet | undefined;
  let staticKeys = new Set<string>();
  /** What the table in force holds, by its prefix as text; unknown for one of an earlier process. */
  let written: Map<string, Prefix> | undefined;

  /**
   * The new table is written beside the one in force, comes into force by one store, and only then the old
   * one is cleared: at no moment is a flow judged by a part of the rules. No packet that comes after this
   * passes by a rule that is gone.
   */
  function setRules(network: CompiledNetwork): void {
    if (network.version < record.version) throw stale(network.version, record.version);
    const compiled = compileWithin(network, entriesMax);
    grants.keepNamed(network);
    // An earlier process's answers: they belong to these very rules.
    if (rules === undefined && network.version === record.version && record.table !== 0) {
      for (const entry of tables.read(slot, record.table)) grants.restore(entry);
    }
    const table = (record.table % VERSION_MAX) + 1;
    const entries = merged(compiled, grants.entries(compiled)).slice(0, entriesMax);
    writeOrUndo(seams, table, entries, record.table);
    const mayUseProxies = network.names.length > 0;
    const old = { table: record.table, written };
    record = { ...record, version: network.version, table, mayUseProxies };
    seams.store(record);
    rules = compiled;
    staticKeys = new Set(compiled.entries.map(({ prefix }) => formatPrefix(prefix)));
    written = new Map(entries.map(({ prefix }) => [formatPrefix(prefix), prefix]));
    if (old.written === undefined) tables.keepOnly(slot, table);
    else tables.clear(slot, old.table, [...old.written.values()]);
  }

  function addDnsAddresses(version: number, addresses: readonly DnsAddress[]): void {
    if (version !== record.version || rules === undefined || written === undefined) {
      throw stale(version, record.version);
    }
    for (const address of addresses) {
      if (!grants.has(address.address)) makeRoom(written);
      const entry = grants.add(address, rules);
      tables.write(slot, record.table, [entry]);
      written.set(formatPrefix(entry.prefix), entry.prefix);
    }
  }

  /** An address whose time is over stays for the flows that it began, until its place is needed. */
  function makeRoom(inTable: Map<string, Prefix>): void {
    while (staticKeys.size + grants.size >= entriesMax) {
      const prefix = grants.dropExpired(seams.nowNs());
      if (prefix === undefined) throw full(slot, entriesMax);
      const key = formatPrefix(prefix);
      if (staticKeys.has(key)) continue;
      tables.clear(slot, record.table, [prefix]);
      inTable.delete(key);
    }
  }

  return {
    get record() {
      return record;
    },
    setRules,
    addDnsAddresses,
  };
}

/** A table that cannot be written whole is not written. */
function writeOrUndo(
  { slot, tables }: SlotSeams,
  table: number,
  entries: readonly RuleEntry[],
  inForce: number,
): void {
  try {
    tables.write(slot, table, entries);
  } catch (thrown) {
    tables.keepOnly(slot, inForce);
    throw thrown;
  }
}

function full(slot: number, entriesMax: number): DsecError {
  const message = `slot ${slot} has ${entriesMax} addresses open already`;
  return new DsecError('quota-exceeded', message);
}

function compileWithin({ version, addresses }: CompiledNetwork, entriesMax: number): RuleSet {
  if (!Number.isInteger(version) || version < 1 || version > VERSION_MAX) {
    throw new DsecError('invalid-argument', `${version} is no version of rules`);
  }
  const compiled = compileRules(addresses);
  const count = compiled.entries.length;
  if (count <= entriesMax) return compiled;
  throw new DsecError('too-large', `${count} address ranges; a sandbox may have ${entriesMax}`);
}

function stale(version: number, versionInForce: number): DsecError {
  const message = `rules of version ${version} are not in force; version ${versionInForce} is`;
  return new DsecError('conflict', message, { details: { version, versionInForce } });
}

/** The entries of rules, and on top those of single addresses, which hold what the rules open there. */
function merged(rules: RuleSet, granted: readonly RuleEntry[]): RuleEntry[] {
  const keys = new Set(granted.map(({ prefix }) => formatPrefix(prefix)));
  const rest = rules.entries.filter(({ prefix }) => !keys.has(formatPrefix(prefix)));
  return [...rest, ...granted];
}
