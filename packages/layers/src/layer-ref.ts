import { DsecError, parseName } from '@dsec/std';
import { parse as parseSemver, rcompare, satisfies } from 'semver';

/** Layers of a root, in the order of composition, bottom first. */
export const ROOT_KINDS = ['base', 'workspace', 'toolkit', 'diff'] as const;
/**
 * Layers that are mounted apart, each read-only below `/.dsec`, so that nothing of a root can replace a file
 * of theirs (THREATS A2). `grading` is what no solver may ever see.
 */
export const APART_KINDS = ['tools', 'grading'] as const;
/** What a layer is for. */
export const LAYER_KINDS = [...ROOT_KINDS, ...APART_KINDS] as const;

export type LayerKind = (typeof LAYER_KINDS)[number];
export type RootKind = (typeof ROOT_KINDS)[number];
export type ApartKind = (typeof APART_KINDS)[number];

/** The fixed name of a layer: `kind/name:version`. */
export interface LayerRef {
  readonly kind: LayerKind;
  readonly name: string;
  /** A full semantic version, `1.2.3` or `1.2.3-rc.1`. */
  readonly version: string;
}

/**
 * A name that may float: `version` is a full version, `^1`, `^1.2`, `^1.2.3`, the same with `~`, or
 * `latest`.
 */
export interface LayerSelector {
  readonly kind: LayerKind;
  readonly name: string;
  readonly version: string;
}

const REF_LENGTH_MAX = 300;
/** Of a version's three numbers; nine digits, as in a range. */
const NUMBER_MAX = 999_999_999;
/** `^` and `~` before one to three numbers. Bounded and free of nesting, so it cannot be made slow. */
const RANGE = /^[\^~](0|[1-9]\d{0,8})(\.(0|[1-9]\d{0,8})){0,2}$/;

export function isLayerKind(value: string): value is LayerKind {
  return (LAYER_KINDS as readonly string[]).includes(value);
}

export function isApartKind(kind: LayerKind): kind is ApartKind {
  return (APART_KINDS as readonly string[]).includes(kind);
}

/** Parses `kind/name:version` with a full version. Every part is safe as a path component. */
export function parseLayerRef(text: string): LayerRef {
  const { kind, name, version } = splitRef(text);
  return { kind, name, version: parseVersion(version) };
}

/** Parses a ref whose version may float. */
export function parseLayerSelector(text: string): LayerSelector {
  const { kind, name, version } = splitRef(text);
  return { kind, name, version: isFloating(version) ? version : parseVersion(version) };
}

/** `kind/name:version`, of a ref or a selector. */
export function formatLayerRef(ref: LayerSelector): string {
  return `${ref.kind}/${ref.name}:${ref.version}`;
}

/** Whether a version selector can mean another layer tomorrow. */
export function isFloating(version: string): boolean {
  return version === 'latest' || RANGE.test(version);
}

/**
 * Checks a version that will be stored: a full semantic version in lower case and without build metadata,
 * because two versions that differ only in build metadata have no order.
 */
export function parseVersion(text: string): string {
  const named = parseName(text, 'version');
  const parsed = parseSemver(named);
  const isBounded = parsed && Math.max(parsed.major, parsed.minor, parsed.patch) <= NUMBER_MAX;
  if (parsed?.version !== named || !isBounded) {
    throw new DsecError(
      'invalid-argument',
      'a layer version is a full semantic version such as 1.2.3 or 1.2.3-rc.1; ' +
        'to select a layer, ^1, ~1.2 and latest are possible too',
    );
  }
  return named;
}

/**
 * The version that a selector means among those that exist, or undefined. The highest wins; pre-releases
 * are found only by their full name.
 */
export function selectVersion(selector: string, versions: readonly string[]): string | undefined {
  if (!isFloating(selector)) return versions.find((version) => version === selector);
  const range = selector === 'latest' ? '*' : selector;
  return sortVersions(versions.filter((version) => satisfies(version, range)))[0];
}

/** Newest first. */
export function sortVersions(versions: readonly string[]): string[] {
  return [...versions].sort(rcompare);
}

/** The order of listings: by kind, then name, newest version first. Negative where `a` comes first. */
export function compareLayerRefs(a: LayerRef, b: LayerRef): number {
  const byKind = LAYER_KINDS.indexOf(a.kind) - LAYER_KINDS.indexOf(b.kind);
  if (byKind !== 0) return byKind;
  if (a.name !== b.name) return a.name < b.name ? -1 : 1;
  return rcompare(a.version, b.version);
}

function splitRef(text: string): LayerSelector {
  const match = text.length <= REF_LENGTH_MAX ? /^([^/:]*)\/([^/:]*):([^/:]*)$/.exec(text) : null;
  const [, kind, name, version] = match ?? [];
  if (kind === undefined || name === undefined || version === undefined) {
    throw new DsecError(
      'invalid-argument',
      'a layer is named kind/name:version, for example base/debian:1.0.0',
    );
  }
  if (!isLayerKind(kind)) {
    throw new DsecError('invalid-argument', `a layer kind is one of ${LAYER_KINDS.join(', ')}`);
  }
  return { kind, name: parseName(name, 'layer name'), version };
}
