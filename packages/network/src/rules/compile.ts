import type { NetworkRule } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import {
  contains,
  formatPrefix,
  intersect,
  type Prefix,
  parseAddress,
  parsePrefix,
  subtract,
  withoutContained,
} from './address.ts';
import type { AddressRule, CompiledNetwork, NameRule, PortRange } from './compiled.ts';
import { servicesOf } from './default-services.ts';
import { matchesPattern, normalizePattern } from './name.ts';
import type { OperatorNetwork, Service } from './operator-network.ts';
import { SPECIAL_RANGES } from './special-ranges.ts';

export const NAME_RULES_MAX = 1024;
export const ADDRESS_RULES_MAX = 1024;
const DOMAIN_PORTS: readonly number[] = [80, 443];
const SERVICE_PORTS: readonly number[] = [443];

/** What a policy narrows about one service (THREATS A10). */
export interface ServiceTerms {
  /** RFC 3339: later releases do not exist. */
  readonly asOf?: string | undefined;
  /** The task's own project and its forks. */
  readonly deny?: readonly string[] | undefined;
}

export interface CompileOptions {
  readonly version: number;
  readonly operator: OperatorNetwork;
  /** Ranges that no rule opens, whatever the operator permits: this node's, its sandboxes', the store's. */
  readonly nodeRanges?: readonly string[] | undefined;
  readonly terms?: Readonly<Record<string, ServiceTerms>> | undefined;
}

/**
 * Rules as a caller wrote them to what the parts of a node work from. A pure function; what is denied wins
 * over what is allowed. Throws `invalid-argument` (names, ranges), `not-found` (a service that the operator
 * does not map), `permission-denied` (a target that nobody may reach), `unsupported` (what no part of a node
 * can enforce) and `too-large`, each with `details.field`.
 */
export function compileNetwork(
  rules: readonly NetworkRule[],
  options: CompileOptions,
): CompiledNetwork {
  const context = contextOf(options);
  const names: NameRule[] = [];
  const addresses: AddressRule[] = [];
  for (const [i, rule] of rules.entries()) {
    const field = `network.${i}`;
    if (rule.kind === 'address') addresses.push(...addressRules(rule, field, context));
    else if (rule.kind === 'domain') names.push(domainRule(rule, field, context));
    else names.push(...serviceRules(rule, field, context));
  }
  for (const service of Object.keys(options.terms ?? {})) {
    if (!context.services.has(service)) throw unknownService(service, `terms.${service}`);
  }
  checkCount(names.length, NAME_RULES_MAX, 'names');
  checkCount(addresses.length, ADDRESS_RULES_MAX, 'address ranges');
  const { version } = options;
  return { version, addresses: unique(addresses), names: unique(names), denied: context.denied };
}

interface Context {
  readonly services: ReadonlyMap<string, Service>;
  readonly terms: Readonly<Record<string, ServiceTerms>>;
  readonly dedicated: readonly string[];
  readonly terminated: readonly string[];
  readonly denied: readonly string[];
  readonly deniedRanges: readonly Prefix[];
  readonly permittedRanges: readonly Prefix[];
}

function contextOf({ operator, nodeRanges = [], terms = {} }: CompileOptions): Context {
  const patterns = (list: readonly string[] | undefined, field: string) =>
    (list ?? []).map((text) => normalizePattern(text, field));
  const ranges = (list: readonly string[] | undefined, field: string) =>
    withoutContained((list ?? []).map((text) => parsePrefix(text, field)));
  return {
    services: servicesOf(operator),
    terms,
    dedicated: patterns(operator.dedicated, 'dedicated'),
    terminated: patterns(operator.terminated, 'terminated'),
    denied: patterns(operator.denied, 'denied'),
    deniedRanges: [
      ...ranges(operator.deniedAddresses, 'deniedAddresses'),
      ...ranges(nodeRanges, 'nodeRanges'),
    ],
    permittedRanges: ranges(operator.permittedAddresses, 'permittedAddresses'),
  };
}

function fault(
  code: 'invalid-argument' | 'permission-denied' | 'unsupported' | 'not-found' | 'too-large',
  field: string,
  message: string,
): DsecError {
  return new DsecError(code, `${field}: ${message}`, { details: { field } });
}

function checkCount(count: number, countMax: number, what: string): void {
  if (count <= countMax) return;
  throw fault('too-large', 'network', `${count} ${what}, more than ${countMax}`);
}

const unique = <T>(rules: readonly T[]): T[] => [
  ...new Map(rules.map((rule) => [JSON.stringify(rule), rule])).values(),
];

const rangesOf = (ports: readonly number[]): PortRange[] =>
  [...new Set(ports)].sort((a, b) => a - b).map((port) => [port, port]);

function addressRules(rule: NetworkRule, field: string, context: Context): AddressRule[] {
  const asked = parsePrefix(rule.target, `${field}.target`);
  const isPublic = subtract([asked], SPECIAL_RANGES);
  const isPermitted = context.permittedRanges.flatMap((range) => intersect(asked, range) ?? []);
  const inside = isPermitted.filter((range) => !isPublic.some((other) => contains(other, range)));
  const open = subtract([...isPublic, ...inside], context.deniedRanges);
  if (open.length === 0) {
    const why = `${rule.target} is private or belongs to the node`;
    throw fault('permission-denied', `${field}.target`, why);
  }
  const ports = rangesOf(rule.ports ?? []);
  const { protocol } = rule;
  return open.map((prefix) => ({
    prefix: formatPrefix(prefix),
    ports,
    ...(protocol === undefined ? {} : { protocol }),
  }));
}

function domainRule(rule: NetworkRule, field: string, context: Context): NameRule {
  const at = `${field}.target`;
  if (parseAddress(rule.target) !== undefined) {
    throw fault('invalid-argument', at, 'an address needs a rule of kind address');
  }
  const pattern = normalizePattern(rule.target, at);
  checkNotDenied(pattern, at, context);
  const isDedicated = isAmong(context.dedicated, pattern);
  checkProtocol(rule, isDedicated, field);
  const ports = rangesOf(portsOf(rule, DOMAIN_PORTS));
  const terminated = terminatedOf(pattern, context, isDedicated);
  return { pattern, ports, isDedicated, ...terminated };
}

/** An empty list of ports says as little as none. */
const portsOf = ({ ports = [] }: NetworkRule, otherwise: readonly number[]): readonly number[] =>
  ports.length > 0 ? ports : otherwise;

const isAmong = (patterns: readonly string[], pattern: string) =>
  patterns.some((known) => known === pattern || covers(known, pattern));

/** Packets to a dedicated name pass the proxy by, so no TLS of theirs ends there. */
function terminatedOf(pattern: string, { terminated }: Context, isDedicated: boolean) {
  return !isDedicated && isAmong(terminated, pattern) ? { isTerminated: true } : {};
}

/** Whether a pattern of a suffix holds a whole other pattern. */
function covers(known: string, pattern: string): boolean {
  return matchesPattern(known, pattern.startsWith('*.') ? `x${pattern.slice(1)}` : pattern);
}

function checkNotDenied(pattern: string, field: string, { denied }: Context): void {
  if (!isAmong(denied, pattern)) return;
  throw fault('permission-denied', field, `the operator denies ${pattern}`);
}

/** The egress proxy carries TCP; UDP reaches only what packets may reach. */
function checkProtocol(rule: NetworkRule, isDedicated: boolean, field: string): void {
  if (rule.protocol !== 'udp') return;
  const why = isDedicated
    ? 'a name opens TCP only; use a rule of kind address for UDP'
    : 'UDP reaches addresses only; this name goes through the egress proxy';
  throw fault('unsupported', `${field}.protocol`, why);
}

const unknownService = (service: string, field: string) =>
  fault('not-found', field, `the operator's map has no service ${service}`);

function serviceRules(rule: NetworkRule, field: string, context: Context): NameRule[] {
  const name = rule.target.toLowerCase();
  const service = context.services.get(name);
  if (service === undefined) throw unknownService(name.slice(0, 64), `${field}.target`);
  const isDedicated = service.dedicated === true;
  checkProtocol(rule, isDedicated, field);
  const { mirror } = service;
  const mapped = mirror?.ports ?? service.ports ?? SERVICE_PORTS;
  const ports = portsOf(rule, mapped);
  checkPorts(ports, mapped, field);
  checkMapped(name, service);
  const shared = {
    ports: rangesOf(ports),
    isDedicated,
    service: name,
    ...termsOf(name, service, context),
    ...(service.inject === undefined ? {} : { inject: service.inject }),
    ...(service.terminate === true ? { isTerminated: true } : {}),
    ...(mirror?.addresses === undefined ? {} : { addresses: mirror.addresses }),
  };
  checkDedicated(shared, field);
  return (mirror?.names ?? service.names).map((text) => {
    const pattern = normalizePattern(text, `services.${name}`);
    checkNotDenied(pattern, `${field}.target`, context);
    return { ...terminatedOf(pattern, context, isDedicated), pattern, ...shared };
  });
}

/** Headers that say whom a message is for and where it ends: no secret takes their place. */
const FRAMING = new Set([
  'host',
  'connection',
  'content-length',
  'transfer-encoding',
  'upgrade',
  'te',
]);

function checkMapped(name: string, { inject, mirror }: Service): void {
  if (inject !== undefined && FRAMING.has(inject.header)) {
    const field = `services.${name}.inject.header`;
    throw fault('invalid-argument', field, `${inject.header} cannot be injected`);
  }
  for (const address of mirror?.addresses ?? []) {
    if (parseAddress(address) !== undefined) continue;
    throw fault(
      'invalid-argument',
      `services.${name}.mirror.addresses`,
      'holds what is no address',
    );
  }
}

/** A caller may take some ports of a service, never other ones than the operator maps. */
function checkPorts(asked: readonly number[], mapped: readonly number[], field: string): void {
  const other = asked.find((port) => !mapped.includes(port));
  if (other === undefined) return;
  throw fault('permission-denied', `${field}.ports`, `the service has no port ${other}`);
}

function checkDedicated(rule: Omit<NameRule, 'pattern'>, field: string): void {
  if (!rule.isDedicated) return;
  const { asOf, deny, inject, isTerminated } = rule;
  if ([asOf, deny, inject, isTerminated].every((one) => one === undefined)) return;
  const why = 'a dedicated service is reached past the proxy, which then cannot do its part';
  throw fault('unsupported', `${field}.target`, why);
}

function termsOf(
  name: string,
  service: Service,
  { terms }: Context,
): Pick<NameRule, 'asOf' | 'deny' | 'index'> {
  const asked = terms[name];
  const asOf = earlier(asked?.asOf, service.asOf);
  const deny = [...new Set([...(service.deny ?? []), ...(asked?.deny ?? [])])];
  if (asOf === undefined && deny.length === 0) return {};
  const { index } = service;
  if (index === undefined) {
    const why = 'the service has no index from which releases or projects can be left out';
    throw fault('unsupported', `terms.${name}`, why);
  }
  return {
    index,
    ...(asOf === undefined ? {} : { asOf: instantOf(asOf, `terms.${name}.asOf`) }),
    ...(deny.length === 0 ? {} : { deny: deny.map((project) => projectOf(index, project)) }),
  };
}

/** Both hold. */
function earlier(a: string | undefined, b: string | undefined): string | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return Date.parse(a) <= Date.parse(b) ? a : b;
}

function instantOf(text: string, field: string): string {
  const isDate = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2}))?$/.test(
    text,
  );
  const ms = Date.parse(text);
  if (!isDate || Number.isNaN(ms)) {
    throw fault('invalid-argument', field, 'write 2024-05-01 or 2024-05-01T00:00:00Z');
  }
  return new Date(ms).toISOString();
}

/** A project as its index compares names (PEP 503; npm is exact in lower case). */
export function projectOf(index: 'pypi' | 'npm', name: string): string {
  const lower = name.toLowerCase();
  return index === 'pypi' ? lower.replace(/[-_.]+/g, '-') : lower;
}
