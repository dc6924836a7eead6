import type { CompiledNetwork, NameRule, PortRange } from './compiled.ts';

interface NameIndex {
  readonly byPattern: ReadonlyMap<string, readonly NameRule[]>;
  readonly denied: ReadonlySet<string>;
}

const indexes = new WeakMap<CompiledNetwork, NameIndex>();

function indexOf(network: CompiledNetwork): NameIndex {
  const known = indexes.get(network);
  if (known !== undefined) return known;
  const byPattern = new Map<string, NameRule[]>();
  for (const rule of network.names) {
    const same = byPattern.get(rule.pattern);
    if (same === undefined) byPattern.set(rule.pattern, [rule]);
    else same.push(rule);
  }
  const index = { byPattern, denied: new Set(network.denied) };
  indexes.set(network, index);
  return index;
}

/**
 * The rule by which a name in normal form may be reached on a port (absent: on any). What is denied stays
 * denied. A rule that leaves something out of an index is the only one for its names, on every port: another
 * rule that opens more does not lift it. Else the most specific rule decides.
 */
export function findNameRule(
  network: CompiledNetwork,
  name: string,
  port?: number,
): NameRule | undefined {
  const { byPattern, denied } = indexOf(network);
  const patterns = patternsOf(name);
  if (patterns.some((pattern) => denied.has(pattern))) return undefined;
  const rules = patterns.flatMap((pattern) => byPattern.get(pattern) ?? []);
  const narrow = rules.filter(isNarrow);
  const deciding = narrow.length > 0 ? narrow : rules;
  return deciding.find((rule) => port === undefined || isPortIn(rule.ports, port));
}

/** Whether a rule is narrower than the host that it names. */
export function isNarrow(rule: NameRule): boolean {
  return rule.asOf !== undefined || (rule.deny !== undefined && rule.deny.length > 0);
}

/** The patterns that match a name, the most specific one first. At most one for each label. */
function patternsOf(name: string): string[] {
  const patterns = [name];
  for (let dot = name.indexOf('.'); dot >= 0; dot = name.indexOf('.', dot + 1)) {
    patterns.push(`*${name.slice(dot)}`);
  }
  return patterns;
}

export function isPortIn(ports: readonly PortRange[], port: number): boolean {
  return ports.length === 0 || ports.some(([low, high]) => low <= port && port <= high);
}
