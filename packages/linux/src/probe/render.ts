import { escapeForTerminal, formatBytes } from '@dsec/std';
import { RUN_AS_ROOT } from './check.ts';
import {
  CHECK_GROUPS,
  type CheckStatus,
  type HostCheck,
  type HostReport,
  PROBED_BACKENDS,
  type Verdict,
  type VerdictStatus,
} from './report.ts';

/** Widest line of the text form. */
export const REPORT_COLUMNS = 100;
const NAME_COLUMNS = 36;
const VERDICT_REASONS_MAX = 6;

const MARKS: Readonly<Record<CheckStatus | VerdictStatus, string>> = {
  ok: '✓',
  degraded: '◐',
  missing: '✗',
  unknown: '?',
  possible: '✓',
  impossible: '✗',
};

const COLORS: Readonly<Record<CheckStatus | VerdictStatus, number>> = {
  ok: 32,
  degraded: 33,
  missing: 31,
  unknown: 36,
  possible: 32,
  impossible: 31,
};

/**
 * The report as text: the checks by group, with what to do under each that is not `ok`, and at the end what
 * every backend can do. At most 100 columns; colour by ANSI codes. Nothing a host or tool printed reaches
 * the terminal raw.
 */
export function renderHostReport(report: HostReport, options: { readonly color: boolean }): string {
  const paint = (code: number, text: string) =>
    options.color ? `\u001b[${code}m${text}\u001b[0m` : text;
  const { host } = report;
  const parts = [
    host.os,
    `Linux ${host.kernel}`,
    host.architecture,
    host.cpus === 1 ? '1 CPU' : `${host.cpus} CPUs`,
    formatBytes(host.memoryBytes),
  ];
  const lines = wrap(escapeForTerminal(parts.join(' · ')), REPORT_COLUMNS, '');
  for (const group of CHECK_GROUPS) {
    const checks = report.checks.filter((check) => check.group === group);
    if (checks.length === 0) continue;
    lines.push('', paint(1, group));
    for (const check of checks) lines.push(...checkLines(check, paint));
  }
  lines.push('', paint(1, 'what this host can do'));
  for (const backend of PROBED_BACKENDS) {
    lines.push(...verdictLines(backend, report.verdicts[backend], paint));
  }
  return `${lines.join('\n')}\n`;
}

type Paint = (code: number, text: string) => string;

function checkLines(check: HostCheck, paint: Paint): string[] {
  const mark = paint(COLORS[check.status], MARKS[check.status]);
  const lines = row(mark, check.id, check.found);
  if (check.status === 'ok' || isRootHint(check)) return lines;
  return [
    ...lines,
    ...wrap(`for: ${check.neededFor}`, REPORT_COLUMNS, '      ').map((line) => paint(2, line)),
    ...wrap(`fix: ${check.remedy}`, REPORT_COLUMNS, '      '),
  ];
}

/**
 * Said once, by the check of the user itself, and not under every trial that an ordinary user may not make.
 */
function isRootHint(check: HostCheck): boolean {
  return check.remedy === RUN_AS_ROOT && check.id !== 'privilege.root';
}

function verdictLines(name: string, verdict: Verdict, paint: Paint): string[] {
  const mark = paint(COLORS[verdict.status], MARKS[verdict.status]);
  const shown = verdict.reasons.slice(0, VERDICT_REASONS_MAX).map((reason) => reason.check);
  const more = verdict.reasons.length - shown.length;
  const because = shown.length === 0 ? '' : `: ${shown.join(', ')}`;
  const rest = more > 0 ? ` and ${more} more` : '';
  return row(mark, name, `${verdict.status}${because}${rest}`);
}

/** Mark, name and a text that wraps under itself; below a name that is too long for its column. */
function row(mark: string, name: string, text: string): string[] {
  const indent = ' '.repeat(4 + NAME_COLUMNS + 1);
  const texts = wrap(escapeForTerminal(text), REPORT_COLUMNS, indent);
  if (name.length > NAME_COLUMNS) return [`  ${mark} ${name}`, ...texts];
  const [first = '', ...others] = texts;
  return [`  ${mark} ${name.padEnd(NAME_COLUMNS)} ${first.trimStart()}`, ...others];
}

/** Breaks at blanks, and inside a word only where it is longer than a line. */
function wrap(text: string, columns: number, indent: string): string[] {
  const width = columns - indent.length;
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ').flatMap((part) => pieces(part, width))) {
    if (line !== '' && line.length + 1 + word.length > width) {
      lines.push(indent + line);
      line = word;
    } else {
      line = line === '' ? word : `${line} ${word}`;
    }
  }
  return [...lines, indent + line];
}

function pieces(word: string, width: number): string[] {
  const parts: string[] = [];
  for (let at = 0; at < word.length || at === 0; at += width)
    parts.push(word.slice(at, at + width));
  return parts;
}
