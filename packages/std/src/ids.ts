import { DsecError } from './errors.ts';
import { type Random, systemRandom } from './random.ts';

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

/** `sb-<shard>-<edge>-<random>`: routes by itself. */
export type SandboxId = Branded<'SandboxId'>;
export type ShardId = Branded<'ShardId'>;
export type EdgeId = Branded<'EdgeId'>;
export type ProjectId = Branded<'ProjectId'>;
export type PrincipalId = Branded<'PrincipalId'>;
export type JobId = Branded<'JobId'>;
export type ExecId = Branded<'ExecId'>;
/** `sha256:` + 64 hex digits. */
export type Digest = Branded<'Digest'>;

export const ID_LENGTH_MAX = 40;
/** Characters of the random part of a sandbox id: 16 of base 32 carry 80 bits. */
const RANDOM_LENGTH = 16;
const BASE32 = 'abcdefghijklmnopqrstuvwxyz234567';
const PART = /^[a-z0-9]{1,40}$/;
const SHARD_LENGTH_MAX = 8;
const EDGE_LENGTH_MAX = 11;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
/** THREATS F7: what a stored name may be. It is safe as a path component: no slash, no leading dot. */
const NAME = /^[a-z0-9][a-z0-9._-]{0,127}$/;

export interface SandboxIdParts {
  readonly shard: ShardId;
  readonly edge: EdgeId;
  readonly random: string;
}

export function newSandboxId(
  shard: ShardId,
  edge: EdgeId,
  random: Random = systemRandom,
): SandboxId {
  return `sb-${shard}-${edge}-${randomPart(random)}` as SandboxId;
}

/** Parses and checks an id from outside. Its parts are labels: never use one as a host name or a path. */
export function parseSandboxId(value: string): SandboxIdParts & { readonly id: SandboxId } {
  const parts = value.length <= ID_LENGTH_MAX ? value.split('-') : [];
  const [prefix, shard, edge, random] = parts;
  if (
    parts.length !== 4 ||
    prefix !== 'sb' ||
    random?.length !== RANDOM_LENGTH ||
    !PART.test(random)
  ) {
    throw new DsecError('invalid-argument', 'a sandbox id has the form sb-<shard>-<edge>-<random>');
  }
  return {
    id: value as SandboxId,
    shard: parseLabel(shard, 'shard', SHARD_LENGTH_MAX) as ShardId,
    edge: parseLabel(edge, 'edge', EDGE_LENGTH_MAX) as EdgeId,
    random,
  };
}

export const parseShardId = (value: string): ShardId =>
  parseLabel(value, 'shard', SHARD_LENGTH_MAX) as ShardId;
export const parseEdgeId = (value: string): EdgeId =>
  parseLabel(value, 'edge', EDGE_LENGTH_MAX) as EdgeId;
export const parseProjectId = (value: string): ProjectId =>
  parseName(value, 'project') as ProjectId;
export const parsePrincipalId = (value: string): PrincipalId =>
  parseName(value, 'principal') as PrincipalId;
export const parseJobId = (value: string): JobId => parseName(value, 'job') as JobId;

export function newExecId(random: Random = systemRandom): ExecId {
  return `ex-${randomPart(random)}` as ExecId;
}

export function parseExecId(value: string): ExecId {
  if (!/^ex-[a-z2-7]{16}$/.test(value)) {
    throw new DsecError('invalid-argument', 'an exec id has the form ex-<16 characters>');
  }
  return value as ExecId;
}

export function parseDigest(value: string, what = 'digest'): Digest {
  if (!DIGEST.test(value)) {
    throw new DsecError('invalid-argument', `${what} must be sha256: followed by 64 hex digits`);
  }
  return value as Digest;
}

export function digestOfHex(hex: string): Digest {
  return parseDigest(`sha256:${hex}`);
}

/** The 64 hex digits, for use as a directory name. */
export function hexOfDigest(digest: Digest): string {
  return digest.slice('sha256:'.length);
}

/** Checks a name that will be stored (project, layer, version, label). Returns it unchanged. */
export function parseName(value: string, what: string): string {
  if (!NAME.test(value) || value.includes('..')) {
    throw new DsecError(
      'invalid-argument',
      `${what} must be 1 to 128 of a-z, 0-9, dot, underscore and hyphen, start with a letter or digit, ` +
        'and hold no two dots in a row',
    );
  }
  return value;
}

function parseLabel(value: string | undefined, what: string, lengthMax: number): string {
  if (value === undefined || value.length > lengthMax || !PART.test(value)) {
    throw new DsecError('invalid-argument', `${what} must be 1 to ${lengthMax} of a-z and 0-9`);
  }
  return value;
}

function randomPart(random: Random): string {
  let text = '';
  for (const byte of random.bytes(RANDOM_LENGTH)) text += BASE32[byte & 31];
  return text;
}
