import {
  POLICY_LIMITS,
  type PolicyDocument,
  type PolicyOverlay,
  type Requirement,
  type Stage,
  VERBS,
} from './document.ts';
import { parseGlob } from './glob.ts';
import { refuseField } from './parse-policy.ts';
import {
  CAPABILITIES,
  type Capability,
  DEVICE_NAMES,
  type Device,
  FAMILY_NAMES,
  SOCKET_FAMILIES,
} from './platform.ts';
import type {
  FileRule,
  Listed,
  NetworkAllowance,
  Policy,
  SocketAllowance,
  Source,
  SyscallDenial,
} from './policy.ts';
import { BUILTIN_PROFILES } from './profiles.ts';

export interface ResolveOptions {
  /** Named documents of the operator; those of DSec cannot be replaced. */
  readonly profiles?: ReadonlyMap<string, PolicyDocument>;
  readonly stage?: Stage;
}

interface Layer {
  readonly overlay: PolicyOverlay;
  readonly origin: string;
  /** In front of the fields of its document. */
  readonly prefix: string;
}

const PLATFORM: Source = { origin: 'platform', field: '' };

/**
 * What a checked document means: its profile, then itself, then the stage, each laid over what is below.
 * `invalid-argument` for a profile that is not there or extends itself, and for overlays that do not fit
 * each other.
 */
export function resolvePolicy(document: PolicyDocument, options: ResolveOptions = {}): Policy {
  const layers = layersOf(document, options);
  const lists = listsOf(layers);
  checkReach(lists);
  return {
    ...(options.stage !== undefined && { stage: options.stage }),
    ...lists,
    files: filesOf(layers),
    syscalls: layers.flatMap(denialsOf),
    require: [...new Set(layers.flatMap(({ overlay }): Requirement[] => overlay.require ?? []))],
  };
}

/** The lowest first. */
function layersOf(document: PolicyDocument, { profiles, stage }: ResolveOptions): Layer[] {
  const layers: Layer[] = [];
  let [next, origin] = [document, 'policy'];
  for (let depth = 0; ; depth += 1) {
    const overlay = stage === undefined ? undefined : next.stages?.[stage];
    const own = { overlay: next, origin, prefix: '' };
    const staged = { overlay, origin: `${origin}, stage ${stage}`, prefix: `stages.${stage}.` };
    layers.unshift(own, ...(overlay === undefined ? [] : [{ ...staged, overlay }]));
    const name = next.extends;
    if (name === undefined) break;
    if (depth === POLICY_LIMITS.extendsDepth) {
      refuseField('extends', `more than ${depth} profiles, or one that extends itself`);
    }
    const found = profileNamed(name, profiles);
    if (found === undefined) return refuseField('extends', `there is no profile ${name}`);
    [next, origin] = [found, `profile ${name}`];
  }
  return inStageOrder(layers);
}

/** What stages say, also those of profiles, lies above all that holds in every stage. */
const inStageOrder = (layers: readonly Layer[]): Layer[] => [
  ...layers.filter(({ prefix }) => prefix === ''),
  ...layers.filter(({ prefix }) => prefix !== ''),
];

function profileNamed(
  name: string,
  profiles: ReadonlyMap<string, PolicyDocument> | undefined,
): PolicyDocument | undefined {
  return Object.hasOwn(BUILTIN_PROFILES, name) ? BUILTIN_PROFILES[name] : profiles?.get(name);
}

/** Of rules with the same pattern the last one stays, where it was written. */
function filesOf(layers: readonly Layer[]): FileRule[] {
  const byPattern = new Map<string, FileRule>();
  let order = 0;
  for (const { overlay, origin, prefix } of layers) {
    for (const [index, { path, access }] of (overlay.files ?? []).entries()) {
      const field = `${prefix}files.${index}`;
      const glob = parseGlob(path, `${field}.path`);
      byPattern.delete(glob.text);
      byPattern.set(glob.text, {
        glob,
        denied: new Set(VERBS.filter((verb) => !access.includes(verb))),
        isHidden: access.includes('hide'),
        order: order++,
        source: { origin, field },
      });
    }
  }
  const rules = withoutDead([...byPattern.values()]);
  checkSize(rules, layers);
  return rules;
}

/** Compilers look at pairs of rules: what they take is bounded by these, whoever wrote the policy. */
function checkSize(rules: readonly FileRule[], layers: readonly Layer[]): void {
  const bytesOf = (some: readonly FileRule[]) =>
    some.reduce((sum, { glob }) => sum + Buffer.byteLength(glob.text), 0);
  const field = `${layers.at(-1)?.prefix ?? ''}files`;
  const { patternBytes, wildcardBytes } = POLICY_LIMITS;
  if (bytesOf(rules) > patternBytes) {
    refuseField(field, `more than ${patternBytes} bytes of patterns, with all that lies below`);
  }
  if (bytesOf(rules.filter(({ glob }) => !glob.isLiteral)) > wildcardBytes) {
    refuseField(field, `more than ${wildcardBytes} bytes of patterns with wildcards`);
  }
}

/** What lies below something hidden never decides. */
function withoutDead(rules: readonly FileRule[]): FileRule[] {
  const hidden = rules.filter(({ glob, isHidden }) => isHidden && glob.isLiteral);
  return rules.filter((rule) => !hidden.some((other) => other !== rule && liesBelow(rule, other)));
}

const liesBelow = ({ glob }: FileRule, { glob: above }: FileRule) =>
  above.literal.every((name, index) => name === glob.literal[index]);

function denialsOf({ overlay, origin, prefix }: Layer): SyscallDenial[] {
  return (overlay.syscalls ?? []).map(({ call, when = [], error = 'EPERM' }, index) => ({
    call,
    when: when.map(({ argument, equals, mask = 0xffff_ffff }) => ({ argument, equals, mask })),
    error,
    source: { origin, field: `${prefix}syscalls.${index}` },
  }));
}

type Lists = Pick<Policy, 'sockets' | 'network' | 'capabilities' | 'devices'>;

function listsOf(layers: readonly Layer[]): Lists {
  return {
    sockets: topmost(layers, 'sockets', PLATFORM_SOCKETS, socketsOf),
    network: topmost(layers, 'network', [], networkOf),
    capabilities: topmost<'capabilities', Capability>(layers, 'capabilities', CAPABILITIES),
    devices: topmost<'devices', Device>(layers, 'devices', DEVICE_NAMES),
  };
}

/** The list of the topmost overlay that has one. */
function topmost<K extends keyof PolicyOverlay, T>(
  layers: readonly Layer[],
  key: K,
  otherwise: readonly T[],
  read: (list: NonNullable<PolicyOverlay[K]>, source: Source) => readonly T[] = (list) =>
    list as unknown as readonly T[],
): Listed<T> {
  const layer = layers.findLast(({ overlay }) => overlay[key] !== undefined);
  const list = layer?.overlay[key];
  if (layer === undefined || list === undefined) return { items: otherwise, source: PLATFORM };
  const source = { origin: layer.origin, field: `${layer.prefix}${key}` };
  return { items: read(list, source), source };
}

const PLATFORM_SOCKETS: readonly SocketAllowance[] = FAMILY_NAMES.map((family) => ({
  family,
  types: SOCKET_FAMILIES[family].types,
}));

const socketsOf = (list: NonNullable<PolicyOverlay['sockets']>): readonly SocketAllowance[] =>
  list.map(({ family, types }) => ({ family, types: types ?? SOCKET_FAMILIES[family].types }));

const networkOf = (
  list: NonNullable<PolicyOverlay['network']>,
  source: Source,
): readonly NetworkAllowance[] =>
  list.map((rule, index) => ({
    rule,
    source: { origin: source.origin, field: `${source.field}.${index}` },
  }));

/** Nothing can be reached without sockets for it. */
function checkReach({ network, sockets }: Lists): void {
  const has = (family: string) => sockets.items.some((socket) => socket.family === family);
  if (has('inet') || has('inet6')) return;
  const [first] = network.items;
  if (first === undefined) return;
  refuseField(
    first.source.field,
    `needs inet or inet6 sockets, which ${sockets.source.field} of the ${sockets.source.origin} lacks`,
    sockets.source.field,
  );
}
