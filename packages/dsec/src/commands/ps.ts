import type { Sandbox as SandboxInfo } from '@dsec/protocol';
import {
  DsecError,
  formatDuration,
  isEndState,
  SANDBOX_STATES,
  type SandboxState,
} from '@dsec/std';
import { withClient } from '../client/connect.ts';
import { parseCount, parsePairs } from '../client/quantities.ts';
import { sandboxJson, showAge, showOrigin, showState } from '../client/table-values.ts';
import { type Flags, type Invocation, listFlag, textFlag } from '../command-line/invocation.ts';
import { printJson, printLines, renderTable } from '../output.ts';

const LIMIT_MAX = 1_000_000;
const HEAD = ['SANDBOX', 'STATE', 'MADE OF', 'JOB', 'AGE', 'ENDS IN'];

export async function run({ flags, json, settings }: Invocation): Promise<void> {
  const job = textFlag(flags, 'job');
  const limit = textFlag(flags, 'limit');
  const label = listFlag(flags, 'label');
  const filter = {
    state: statesOf(flags),
    ...(job === undefined ? {} : { job }),
    label: parsePairs(label, '--label'),
    ...(limit === undefined ? {} : { limit: parseCount(limit, '--limit', 1, LIMIT_MAX) }),
  };
  await withClient(settings, async (client) => {
    const found: SandboxInfo[] = [];
    for await (const { info } of client.list(filter)) found.push(info);
    if (json) return printJson({ sandboxes: found.map(sandboxJson) });
    if (flags.quiet === true) return printLines(found.map(({ id }) => id));
    process.stdout.write(`${renderTable(HEAD, found.map(rowOf))}\n`);
  });
}

/** Those that live, unless others are asked for. */
function statesOf(flags: Flags): readonly SandboxState[] {
  const asked = listFlag(flags, 'only');
  if (asked.length === 0) {
    return flags.all === true ? SANDBOX_STATES : SANDBOX_STATES.filter((s) => !isEndState(s));
  }
  return asked.map((text) => {
    const state = SANDBOX_STATES.find((known) => known === text);
    if (state !== undefined) return state;
    const known = SANDBOX_STATES.join(', ');
    throw new DsecError('invalid-argument', `--only is one of ${known}`);
  });
}

function rowOf(info: SandboxInfo): string[] {
  const { id, spec, state, createdAtMs, expiresAtMs } = info;
  const left =
    expiresAtMs === undefined || isEndState(state) ? undefined : expiresAtMs - Date.now();
  return [
    ...[id, showState(info), showOrigin(info), spec.job ?? '-', showAge(createdAtMs)],
    left === undefined ? '-' : formatDuration(Math.max(0, left)),
  ];
}
