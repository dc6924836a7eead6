import {
  type CompiledPolicy,
  comparePolicies,
  compilePolicy,
  enforcePolicy,
  type PolicyChange,
  type PolicyDocument,
  type PolicyFacts,
  type RuleProtection,
  resolvePolicy,
  STAGES,
  type Stage,
} from '@dsec/policy';
import { asDsecError, type DsecError, toErrorBody } from '@dsec/std';
import type { Invocation } from '../command-line/invocation.ts';
import { printError, printJson, printLines, renderTable } from '../output.ts';
import { factsOfHost, readPolicy } from '../policy-source.ts';

interface StageReport {
  /** Absent: outside of every stage. */
  readonly stage?: Stage;
  readonly protections: readonly RuleProtection[];
  readonly change?: PolicyChange;
  /** Why a node like this one refuses it. */
  readonly refusal?: DsecError;
}

export async function run({ args: [source = ''], json }: Invocation): Promise<void> {
  const document = readPolicy(source);
  const reports = reportsOf(document, factsOfHost());
  const refusal = reports.find((report) => report.refusal !== undefined)?.refusal;
  if (json) {
    printJson({
      stages: reports.map(({ refusal: error, ...rest }) => ({
        ...rest,
        ...(error !== undefined && { refusal: toErrorBody(error) }),
      })),
    });
  } else {
    for (const report of reports) printReport(report);
    if (refusal !== undefined) printError(refusal, false);
  }
  process.exitCode = refusal?.exitCode ?? 0;
}

/** The policy without a stage, then each stage that it speaks of, as a switch from the one before. */
function reportsOf(document: PolicyDocument, facts: PolicyFacts): StageReport[] {
  const stages = STAGES.filter((stage) => document.stages?.[stage] !== undefined);
  let before = resolvePolicy(document);
  const base = { protections: compilePolicy(before, facts).protections };
  const reports: StageReport[] = [{ ...base, ...refusalOf(() => enforcePolicy(before, facts)) }];
  for (const stage of stages) {
    const policy = resolvePolicy(document, { stage });
    reports.push({
      stage,
      protections: compilePolicy(policy, facts).protections,
      change: comparePolicies(before, policy),
      ...refusalOf(() => enforcePolicy(policy, facts)),
    });
    before = policy;
  }
  return reports;
}

function refusalOf(enforce: () => CompiledPolicy): { refusal?: DsecError } {
  try {
    enforce();
    return {};
  } catch (thrown) {
    const error = asDsecError(thrown);
    if (error.code !== 'unsupported') throw error;
    return { refusal: error };
  }
}

function printReport({ stage, protections, change }: StageReport): void {
  if (stage !== undefined) printLines(['', `stage ${stage}${changeText(change)}`]);
  const rows = protections.map(({ rule, isEnforced, enforcements, openVerbs }) => {
    const by = [...new Set(enforcements.map((one) => one.by))].join(', ');
    const open = openVerbs.length === 0 ? 'no' : `not ${openVerbs.join(', ')}`;
    return [rule.text, rule.source.origin, isEnforced ? 'yes' : open, by === '' ? '-' : by];
  });
  process.stdout.write(`${renderTable(['RULE', 'FROM', 'ENFORCED', 'BY'], rows)}\n`);
  for (const { rule, isEnforced, enforcements, why } of protections) {
    const notes = [
      ...new Set(enforcements.flatMap(({ by, note }) => (note ? [`${by}: ${note}`] : []))),
    ];
    if (isEnforced && notes.length === 0) continue;
    const title = isEnforced ? rule.text : `${rule.text}: not enforced`;
    printLines([title, ...[...why, ...notes].map((line) => `  ${line}`)]);
  }
}

function changeText(change: PolicyChange | undefined): string {
  if (change === undefined) return '';
  const { isTightening, hides, endsSessions, loosenings } = change;
  const [first] = loosenings;
  const example = first === undefined ? '' : ` (${first.section}: ${first.what})`;
  return [
    isTightening ? ': a tightening' : `: not a tightening${example}`,
    hides.length === 0 ? '' : `; hides ${hides.join(' ')}`,
    endsSessions ? '; sessions end' : '',
  ].join('');
}
