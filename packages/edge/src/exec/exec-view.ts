import { type Exec, INLINE_OUTPUT_BYTES_MAX, type OutputTotals, textOfBytes } from '@dsec/protocol';
import type { ExecRow } from '../journal/exec-table.ts';
import type { Command } from './command.ts';
import { commandText } from './settled-spec.ts';
import type { Spool } from './spool.ts';

/** A command that has not ended, as the API shows it. */
export function viewOfCommand(command: Command): Exec {
  if (command.outcome !== undefined) return viewOfRow({ ...command.row, outcome: command.outcome });
  return {
    ...common(command.row),
    state: command.started ? 'running' : 'starting',
    stdout: command.stdout.totals(),
    stderr: command.stderr.totals(),
  };
}

const NOTHING: OutputTotals = {
  totalBytes: 0,
  headBytes: 0,
  tailOffset: 0,
  truncated: false,
  ended: false,
};

/** A command by its row alone. */
export function viewOfRow(row: ExecRow): Exec {
  if (row.outcome === undefined) {
    return { ...common(row), state: 'starting', stdout: NOTHING, stderr: NOTHING };
  }
  return { ...common(row), ...row.outcome };
}

function common(row: ExecRow) {
  const { id, sandbox, sequence, spec, startedAtMs } = row;
  const session = spec.session === undefined ? {} : { session: spec.session };
  return { id, sandbox, sequence, ...session, command: commandText(spec), startedAtMs };
}

/** The beginning of an output, inside JSON. */
export function inlineOutput(spool: Spool): { offset: number; text: string; base64?: string } {
  const { offset, data } = spool.read(0, INLINE_OUTPUT_BYTES_MAX);
  return { offset, ...textOfBytes(data) };
}
