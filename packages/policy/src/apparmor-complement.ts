import { escapeBytes, withBelow } from './apparmor-text.ts';

/**
 * AppArmor's denials win over all that allows, so an exception must not be denied in the first place: what is
 * denied is spelled out as all names but those of the exceptions.
 */

/** Bytes that mean nothing in a bracket of AppArmor. A hyphen goes last. */
const PLAIN = new Set([...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+~-']);

const PATTERNS_MAX = 512;

/**
 * Patterns for the tree at `base` without the trees at `exceptions`, which lie below it; undefined when that
 * takes names with unusual bytes, or too many patterns.
 */
export function treeWithout(
  base: readonly string[],
  exceptions: readonly (readonly string[])[],
): readonly string[] | undefined {
  const names = exceptions.flatMap((exception) => exception.slice(base.length));
  if (names.some((name) => [...name].some((byte) => !PLAIN.has(byte)))) return undefined;
  const patterns = treePatterns(
    base.map((name) => `/${escapeBytes(name)}`).join(''),
    exceptions.map((exception) => exception.slice(base.length)),
  );
  return patterns.length > PATTERNS_MAX ? undefined : patterns;
}

/** `at` is the pattern of a directory, the exceptions are below it. */
function treePatterns(at: string, exceptions: readonly (readonly string[])[]): string[] {
  if (exceptions.length === 0) return [withBelow(at)];
  const byName = new Map<string, (readonly string[])[]>();
  for (const [name = '', ...rest] of exceptions) {
    byName.set(name, [...(byName.get(name) ?? []), rest]);
  }
  const itself = at === '' ? '/' : `${at}{,/}`;
  const others = otherNames([...byName.keys()]).map((name) => withBelow(`${at}/${name}`));
  const deeper = [...byName].flatMap(([name, rests]) =>
    // An exception that ends here takes the whole tree.
    rests.some((rest) => rest.length === 0) ? [] : treePatterns(`${at}/${name}`, rests),
  );
  return [itself, ...others, ...deeper];
}

/** Patterns for every name but these, by the tree of their beginnings. */
export function otherNames(names: readonly string[]): string[] {
  const beginnings = new Set(
    names.flatMap((name) =>
      Array.from({ length: name.length + 1 }, (_, end) => name.slice(0, end)),
    ),
  );
  const taken = new Set(names);
  return [...beginnings].flatMap((beginning) => {
    const next = [...beginnings]
      .filter((other) => other.length === beginning.length + 1 && other.startsWith(beginning))
      .map((other) => other.slice(-1))
      .sort((a, b) => Number(a === '-') - Number(b === '-'));
    const longer = `${beginning}[^/${next.join('')}]*`;
    const isName = beginning !== '' && !taken.has(beginning);
    return isName ? [beginning, longer] : [longer];
  });
}
