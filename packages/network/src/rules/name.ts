import { domainToASCII, domainToUnicode } from 'node:url';
import { DsecError } from '@dsec/std';
import { getPublicSuffix } from 'tldts';

export const NAME_BYTES_MAX = 253;
const LABEL = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/;

/**
 * A name as it stands in a packet, in the form that rules are compared in: lower case, no dot at the end.
 * `undefined` for what is no host name: other characters, an address, a single label, too long.
 */
export function normalizeWireName(text: string): string | undefined {
  if (text.length > NAME_BYTES_MAX + 1) return undefined;
  const name = (text.endsWith('.') ? text.slice(0, -1) : text).toLowerCase();
  return isHostName(name) ? name : undefined;
}

function isHostName(name: string): boolean {
  if (name.length > NAME_BYTES_MAX) return false;
  const labels = name.split('.');
  // A last label of digits makes an address of the whole in the eyes of many programs.
  const last = labels.at(-1) ?? '';
  return (
    labels.length >= 2 && labels.every((l) => LABEL.test(l)) && !/^(\d+|0x[0-9a-f]*)$/.test(last)
  );
}

/**
 * A name that a person wrote, as A-labels in lower case. Throws `invalid-argument` for what is no host name
 * of two labels or more, and for names that look like another one: characters that IDNA maps to plain
 * letters, scripts mixed in a label, and labels made only of another script's letters that look Latin.
 */
export function normalizeName(text: string, field: string): string {
  const refuse = (why: string) =>
    new DsecError('invalid-argument', `${field}: ${JSON.stringify(text.slice(0, 80))} ${why}`, {
      details: { field },
    });
  const labels = text
    .replace(/[.。]$/u, '')
    .toLowerCase()
    .split('.');
  if (labels.length > 128) throw refuse('has too many labels');
  const name = labels.map((label) => aLabelOf(label, refuse)).join('.');
  if (!isHostName(name)) {
    throw refuse('is no host name: letters, digits and hyphens, two labels or more, no address');
  }
  return name;
}

type Refuse = (why: string) => DsecError;

function aLabelOf(label: string, refuse: Refuse): string {
  const isPlain = /^[\x20-\x7e]*$/.test(label);
  if (isPlain && !label.startsWith('xn--')) return label;
  const unicode = isPlain ? domainToUnicode(label) : label;
  const ascii = domainToASCII(unicode);
  if (ascii === '' || (isPlain && ascii !== label)) throw refuse('has a label that IDNA refuses');
  if (!isPlain && (unicode.normalize('NFKC') !== unicode || !ascii.startsWith('xn--'))) {
    throw refuse(`means ${ascii} and only looks different; write that, if it is meant`);
  }
  // Whoever writes an A-label sees that it is one: nothing is hidden then.
  if (isPlain) return ascii;
  if (!isOneWriting(scriptsOf(unicode)))
    throw refuse('mixes scripts in a label, to look like another name');
  if (looksLatin(unicode)) throw refuse('looks like a name in Latin letters and is another one');
  return ascii;
}

const SCRIPTS = [
  ...[
    'Latin',
    'Cyrillic',
    'Greek',
    'Armenian',
    'Georgian',
    'Hebrew',
    'Arabic',
    'Thai',
    'Devanagari',
  ],
  ...['Han', 'Hiragana', 'Katakana', 'Bopomofo', 'Hangul'],
].map((script) => [script, new RegExp(`\\p{Script=${script}}`, 'u')] as const);

function scriptsOf(label: string): Set<string> {
  const scripts = new Set<string>();
  for (const character of label) {
    if (!/\p{L}/u.test(character)) continue;
    scripts.add(SCRIPTS.find(([, pattern]) => pattern.test(character))?.[0] ?? 'another');
  }
  return scripts;
}

/** Scripts that are written together (Unicode TS 39, without Latin beside them). */
const TOGETHER = [
  ['Han', 'Hiragana', 'Katakana'],
  ['Han', 'Bopomofo'],
  ['Han', 'Hangul'],
];

function isOneWriting(scripts: ReadonlySet<string>): boolean {
  if (scripts.size <= 1) return true;
  return TOGETHER.some((group) => [...scripts].every((script) => group.includes(script)));
}

/** Letters of Cyrillic, Greek and Armenian that most fonts draw like Latin ones. */
const LATIN_LIKE = /^[асԁеһіјӏорԛѕԝхуѵѡьгпкмтвнабαοινρτυκχγօսհոցզ0-9-]+$/u;

function looksLatin(label: string): boolean {
  return /[^\p{ASCII}]/u.test(label) && LATIN_LIKE.test(label);
}

/**
 * An exact name or `*.suffix`. Throws `invalid-argument` as `normalizeName`, for a star anywhere else, and
 * for a suffix that is public: below it anybody can have a name (the public suffix list, its private part as
 * well).
 */
export function normalizePattern(text: string, field: string): string {
  if (!text.includes('*')) return normalizeName(text, field);
  const fault = (why: string) =>
    new DsecError('invalid-argument', `${field}: ${JSON.stringify(text.slice(0, 80))} ${why}`, {
      details: { field },
    });
  const suffixText = text.slice(2);
  if (!text.startsWith('*.') || suffixText.includes('*')) {
    throw fault('may have a star only as its whole first label');
  }
  if (!suffixText.replace(/\.$/, '').includes('.')) {
    throw fault('would open a whole top-level domain; name what is needed below it');
  }
  const suffix = normalizeName(suffixText, field);
  if (getPublicSuffix(suffix, { allowPrivateDomains: true }) === suffix) {
    throw fault(`would open a public suffix, below which anybody can have a name`);
  }
  return `*.${suffix}`;
}

/** Whether a name in normal form is what a pattern in normal form means. `*.x` is not `x` itself. */
export function matchesPattern(pattern: string, name: string): boolean {
  return pattern.startsWith('*.') ? name.endsWith(pattern.slice(1)) : name === pattern;
}
