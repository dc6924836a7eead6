/** A command in a sandbox, joined to our standard streams, signals and terminal until it ends. */
import { once } from 'node:events';
import { constants } from 'node:os';
import type { Command } from '@dsec/libdsec';
import { DsecError } from '@dsec/std';
import { onReaderGone } from '../output.ts';
import { exitCodeOf } from './exit-code.ts';
import { forwardInput } from './input.ts';
import { createEscape, enterRawMode, followResizes } from './terminal.ts';

export interface AttendOptions {
  /** Pass our standard input on. */
  readonly input: boolean;
  /** It has a terminal of its own, which ours becomes. */
  readonly pty: boolean;
  /** Throws in place of telling the command: the caller ends it in another way. */
  readonly interrupt?: AbortSignal | undefined;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const;

/** Resolves with the exit code (128 and the signal) when everything that it wrote has been passed on. */
export async function attend(command: Command, options: AttendOptions): Promise<number> {
  const leaving = new AbortController();
  const signal =
    options.interrupt === undefined
      ? leaving.signal
      : AbortSignal.any([leaving.signal, options.interrupt]);
  const undo: (() => void)[] = [];
  try {
    if (options.interrupt === undefined) undo.push(passSignals(command, leaving));
    undo.push(onReaderGone(() => command.signal(constants.signals.SIGPIPE)));
    if (options.pty) {
      undo.push(enterRawMode());
      undo.push(followResizes(({ rows, columns }) => command.resize(rows, columns)));
    }
    const watch = createEscape();
    const translate = (typed: Buffer) => {
      if (!options.pty) return typed;
      const { pass, leave } = watch(typed);
      if (leave) leaving.abort(left(command));
      return pass;
    };
    const input = options.input ? forwardInput(command, translate) : undefined;
    if (input !== undefined) undo.push(() => input.stop());
    const written = passOutput(command, signal);
    await (input === undefined ? written : Promise.race([written, input.failed]));
    return exitCodeOf(command);
  } catch (thrown) {
    // The client's own word for it would be a bare `cancelled`.
    throw signal.aborted ? signal.reason : thrown;
  } finally {
    for (const step of undo.reverse()) step();
  }
}

async function passOutput(command: Command, signal: AbortSignal): Promise<void> {
  for await (const { stream, data } of command.stream({ signal })) {
    const sink = process[stream];
    if (!sink.write(data)) await once(sink, 'drain', { signal });
  }
}

/** The first signal is for the command; when another comes, we leave it alone. */
function passSignals(command: Command, leaving: AbortController): () => void {
  let count = 0;
  const onSignal = (name: NodeJS.Signals) => {
    count += 1;
    if (count > 1) return leaving.abort(left(command));
    command.signal(constants.signals[name]).catch((thrown: unknown) => {
      const hasEnded = thrown instanceof DsecError && thrown.code === 'state-conflict';
      if (!hasEnded) leaving.abort(thrown);
    });
  };
  for (const name of SIGNALS) process.on(name, onSignal);
  return () => {
    for (const name of SIGNALS) process.removeListener(name, onSignal);
  };
}

function left({ id, info }: Command): DsecError {
  return new DsecError(
    'cancelled',
    `left the command, which runs on: dsec logs ${info.sandbox} ${id}`,
  );
}
