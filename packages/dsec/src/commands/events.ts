import { EVENT_TYPES, type Event } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import { withClient } from '../client/connect.ts';
import { showState, showTime } from '../client/table-values.ts';
import { type Invocation, listFlag, textFlag } from '../command-line/invocation.ts';
import { printJson, printLines } from '../output.ts';
import { withInterrupt } from './interrupt.ts';

export async function run({ flags, json, settings }: Invocation): Promise<void> {
  const types = listFlag(flags, 'type').map((text) => {
    const type = EVENT_TYPES.find((known) => known === text);
    if (type !== undefined) return type;
    throw new DsecError('invalid-argument', `--type is one of ${EVENT_TYPES.join(', ')}`);
  });
  const filter = {
    cursor: textFlag(flags, 'since'),
    sandbox: textFlag(flags, 'sandbox'),
    job: textFlag(flags, 'job'),
    types: types.length === 0 ? undefined : types,
  };
  await withClient(settings, (client) =>
    withInterrupt(async (signal) => {
      try {
        for await (const event of client.events({ ...filter, signal })) {
          if (json) printJson(event);
          else printLines([lineOf(event)]);
        }
      } catch (thrown) {
        // It has no end of its own: to be interrupted is how it is used.
        if (!signal.aborted) throw thrown;
      }
    }),
  );
}

function lineOf(event: Event): string {
  const head = `${showTime(event.atMs)}  ${event.type}`;
  switch (event.type) {
    case 'sandbox-state':
      return `${head}  ${event.sandbox}  ${showState(event)}`;
    case 'exec-exit': {
      const { exitCode, signal } = event.exit ?? {};
      const end = signal === undefined ? `exit code ${exitCode ?? 'unknown'}` : `signal ${signal}`;
      return `${head}  ${event.sandbox}  ${event.exec}  ${end}`;
    }
    case 'session-end':
      return `${head}  ${event.sandbox}  ${event.session}`;
    case 'tamper':
    case 'denied': {
      const { at, reason, target = '', suppressed } = event;
      const port = event.type === 'denied' ? event.port : undefined;
      const where = `${target}${port === undefined ? '' : ` port ${port}`}`;
      const others = suppressed === 0 ? '' : `  and ${suppressed} before`;
      return `${head}  ${event.sandbox}  ${at}: ${reason}  ${where}${others}`;
    }
    default:
      return `${head}  events before this are no longer kept; read the state again`;
  }
}
