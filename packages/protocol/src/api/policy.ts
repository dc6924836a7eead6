/**
 * The policy of a sandbox as it is written: one JSON document. `spec/policy.schema.json` is generated from
 * this file. A policy takes away from what the platform gives (`platform.ts` of `@dsec/policy`) and adds
 * nothing but reach: the network rules.
 */
import Type, { type Static } from 'typebox';
import { integer, listOfMax, name, record, words } from '../names.ts';
import { NetworkRule } from './network-rule.ts';

/** Capabilities of root inside that the platform gives, in the order of their numbers. */
export const CAPABILITIES = [
  ...(['chown', 'dac_override', 'fowner', 'fsetid', 'kill', 'setgid'] as const),
  ...(['setuid', 'setpcap', 'net_bind_service', 'setfcap'] as const),
] as const;
export type Capability = (typeof CAPABILITIES)[number];
export const FAMILY_NAMES = ['unix', 'inet', 'inet6', 'netlink'] as const;
export type SocketFamily = (typeof FAMILY_NAMES)[number];
export const TYPE_NAMES = ['stream', 'dgram', 'raw', 'seqpacket'] as const;
export type SocketType = (typeof TYPE_NAMES)[number];
export const DEVICE_NAMES = [
  ...(['null', 'zero', 'full', 'random', 'urandom', 'tty', 'ptmx', 'pts'] as const),
] as const;
export type Device = (typeof DEVICE_NAMES)[number];
export const DENIAL_ERROR_NAMES = ['EPERM', 'EACCES', 'EINVAL', 'ENOSYS'] as const;
export type DenialError = (typeof DENIAL_ERROR_NAMES)[number];

/** Of a pattern of file names, as text. */
export const PATTERN_BYTES_MAX = 1024;

export const STAGES = ['build', 'solve', 'grade'] as const;
export const PolicyStageWord = words('PolicyStageWord', STAGES);
export type Stage = Static<typeof PolicyStageWord>;

export const VERBS = ['read', 'write', 'exec'] as const;
export type Verb = (typeof VERBS)[number];

export const POLICY_LIMITS = {
  files: 256,
  network: 256,
  syscalls: 64,
  conditions: 4,
  /** Of all patterns together, overlays applied; and of those that have wildcards. */
  patternBytes: 32_768,
  wildcardBytes: 4096,
  /** A profile may extend another. */
  extendsDepth: 8,
  /** As JSON text. */
  bytes: 1 << 20,
} as const;

const uniqueOf = <T extends string>(title: string, values: readonly [T, ...T[]], itemsMin = 0) =>
  Type.Array(words(title, values), {
    uniqueItems: true,
    maxItems: values.length,
    ...(itemsMin === 0 ? {} : { minItems: itemsMin }),
  });

export const FileRuleText = record(
  'FileRule',
  {
    path: Type.String({
      minLength: 1,
      maxLength: PATTERN_BYTES_MAX,
      pattern: '^/',
      description:
        'An absolute path; * and ? stand for bytes of a name, ** for any number of names. ' +
        'Holds for what it names and for all below.',
    }),
    access: uniqueOf('FileAccess', ['read', 'write', 'exec', 'hide']),
  },
  'All that can be done there. `hide` stands alone: nothing, there and below, whatever other rules ' +
    'say, and where it can be, as if nothing were there.',
);

export const SocketRule = record(
  'SocketRule',
  {
    family: words('SocketFamily', FAMILY_NAMES),
    types: Type.Optional(uniqueOf('SocketType', TYPE_NAMES, 1)),
  },
  'Sockets that may be made; without `types`, all types that the platform has.',
);

const WORD_MAX = 2 ** 32 - 1;
export const SyscallCondition = record(
  'SyscallCondition',
  {
    argument: integer(0, 5),
    equals: integer(0, WORD_MAX),
    mask: Type.Optional(integer(1, WORD_MAX, 'Bits that are looked at; absent: all.')),
  },
  'Of the low 32 bits of an argument, which is all that the kernel looks at for an `int`.',
);

export const SyscallDenialText = record(
  'SyscallDenial',
  {
    call: Type.String({ pattern: '^[a-z0-9_]+$', minLength: 1, maxLength: 32 }),
    when: Type.Optional(listOfMax(SyscallCondition, POLICY_LIMITS.conditions, 1)),
    error: Type.Optional(words('DenialError', DENIAL_ERROR_NAMES)),
  },
  'A system call that is refused, with EPERM if nothing else is said. With `when`: if all of it holds.',
);

export const SECTIONS = [
  'files',
  'sockets',
  'network',
  'capabilities',
  'syscalls',
  'devices',
] as const;
export type Section = (typeof SECTIONS)[number];
/** `agent`: aether, when it starts a session; `network`: the network namespace, its programs and proxies. */
export const MECHANISMS = [
  'mounts',
  'landlock',
  'apparmor',
  'seccomp',
  'device-rules',
  'agent',
  'network',
] as const;
export type Mechanism = (typeof MECHANISMS)[number];
export type Requirement = Section | Mechanism;
/** Sections and mechanisms: one word is both. */
const REQUIREMENTS = [...new Set([...SECTIONS, ...MECHANISMS])] as [Requirement, ...Requirement[]];

const overlayFields = {
  files: Type.Optional(listOfMax(FileRuleText, POLICY_LIMITS.files)),
  sockets: Type.Optional(listOfMax(SocketRule, FAMILY_NAMES.length)),
  network: Type.Optional(listOfMax(NetworkRule, POLICY_LIMITS.network)),
  capabilities: Type.Optional(uniqueOf('Capability', CAPABILITIES)),
  syscalls: Type.Optional(listOfMax(SyscallDenialText, POLICY_LIMITS.syscalls)),
  devices: Type.Optional(uniqueOf('Device', DEVICE_NAMES)),
  require: Type.Optional(uniqueOf('Requirement', REQUIREMENTS)),
};

export const PolicyStage = record(
  'PolicyStage',
  overlayFields,
  'Laid over the rest while the stage lasts.',
);
export type PolicyOverlay = Static<typeof PolicyStage>;

export const PolicyDocument = record(
  'Policy',
  {
    version: Type.Literal(1),
    description: Type.Optional(Type.String({ maxLength: 512 })),
    extends: Type.Optional(name),
    ...overlayFields,
    stages: Type.Optional(
      record('PolicyStages', {
        build: Type.Optional(PolicyStage),
        solve: Type.Optional(PolicyStage),
        grade: Type.Optional(PolicyStage),
      }),
    ),
  },
  'What a sandbox may do. `files`, `syscalls` and `require` of an overlay add to what lies below; ' +
    'its other lists replace theirs.',
);
export type PolicyDocument = Static<typeof PolicyDocument>;

/** The JSON schema of policies, for editors and other programs. */
export const policySchema = (): object => ({
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  ...PolicyDocument,
});

/** What a create may say. */
export const PolicyChoice = Type.Union([name, PolicyDocument], {
  description:
    'Name of a profile (open, default, locked, or one of the operator), or the document itself.',
});
export type PolicyChoice = Static<typeof PolicyChoice>;

export const StageSwitch = record(
  'StageSwitch',
  { stage: PolicyStageWord },
  'The stage whose rules hold from now on.',
);
export type StageSwitch = Static<typeof StageSwitch>;
