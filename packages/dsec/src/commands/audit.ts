import type { AuditRecord, AuditRow, Event } from '@dsec/protocol';
import { withClient } from '../client/connect.ts';
import { showTime } from '../client/table-values.ts';
import { type Invocation, textFlag } from '../command-line/invocation.ts';
import { printJson, printLines, renderTable } from '../output.ts';
import { withInterrupt } from './interrupt.ts';

const HEAD = ['SANDBOX', 'JOB', 'AT', 'WHY', 'WHAT', 'COUNT', 'FIRST', 'LAST'];

export async function run({ flags, json, settings }: Invocation): Promise<void> {
  const filter = { sandbox: textFlag(flags, 'sandbox'), job: textFlag(flags, 'job') };
  await withClient(settings, async (client) => {
    if (flags.follow === true) {
      const types = ['denied', 'tamper', 'lost'] as const;
      return withInterrupt(async (signal) => {
        try {
          for await (const event of client.events({ ...filter, types, signal })) {
            if (json) printJson(event);
            else printLines([auditLine(event)]);
          }
        } catch (thrown) {
          // It has no end of its own: to be interrupted is how it is used.
          if (!signal.aborted) throw thrown;
        }
      });
    }
    const records: AuditRecord[] = [];
    for await (const record of client.audit(filter)) records.push(record);
    if (json) return printJson({ records });
    process.stdout.write(`${renderTable(HEAD, records.flatMap(rowsOf))}\n`);
    printLines([summaryOf(records)]);
  });
}

/** Whom and what it is about, as one line of a stream. */
export function auditLine(event: Event): string {
  const head = `${showTime(event.atMs)}  ${event.type}`;
  if (event.type !== 'denied' && event.type !== 'tamper') {
    return `${head}  events before this are no longer kept; dsec audit has the numbers`;
  }
  const { sandbox, at, reason, suppressed } = event;
  const others = suppressed === 0 ? '' : `, and ${suppressed} more`;
  return `${head}  ${sandbox}  ${at}  ${reason}  ${targetOf(event)}${others}`;
}

function targetOf(about: Pick<AuditRow, 'target'> & { readonly port?: number }): string {
  const { target = '-', port } = about;
  return port === undefined ? target : `${target}:${port}`;
}

/** Its attempts, those that come most often first, then those of which only the number is known. */
export function rowsOf({ sandbox, job = '-', rows, lost }: AuditRecord): string[][] {
  const told = [...rows]
    .sort((a, b) => b.count - a.count)
    .map((row) => [
      ...[sandbox, job, row.at, row.reason, targetOf(row), String(row.count)],
      ...[showTime(row.firstAtMs), showTime(row.lastAtMs)],
    ]);
  if (lost === 0) return told;
  return [...told, [sandbox, job, '-', 'others', '-', String(lost), '-', '-']];
}

export function summaryOf(records: readonly AuditRecord[]): string {
  const sum = (of: (record: AuditRecord) => number) =>
    records.reduce((total, record) => total + of(record), 0);
  const lost = sum((record) => record.lost);
  const unknown = lost === 0 ? '' : `; of ${lost} only the number is known`;
  return `${sum(({ total }) => total)} attempts by ${records.length} sandboxes${unknown}`;
}
