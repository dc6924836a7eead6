import { checkName, checkPosition, checkValue, checkWait, pageLimit } from './checks.ts';
import type { MemoryContext } from './memory-context.ts';
import { logMoved, logTrimmed } from './refusals.ts';
import { type LogEntry, type LogStore, PAGE_BYTES_MAX } from './store.ts';
import { lookAndWait } from './waiters.ts';

interface Log {
  readonly entries: LogEntry[];
  trimmedThrough: number;
}

export function createMemoryLogs(context: MemoryContext): LogStore {
  const logs = new Map<string, Log>();
  const topicOf = (log: string) => `log:${log}`;
  const lastOf = (log: string) => logs.get(log)?.entries.at(-1)?.sequence ?? 0;

  return {
    async append(name, value, options) {
      checkName(name, 'log');
      checkValue(value);
      if (options?.expectLast !== undefined) checkPosition('expectLast', options.expectLast);
      context.assertOpen();
      const last = lastOf(name);
      if (options?.expectLast !== undefined && options.expectLast !== last) {
        throw logMoved(name, last);
      }
      const log: Log = logs.get(name) ?? { entries: [], trimmedThrough: 0 };
      logs.set(name, log);
      const sequence = context.nextRevision();
      log.entries.push({ sequence, value: value.slice() });
      context.waiters.wake(topicOf(name));
      return sequence;
    },
    async read(name, options) {
      checkName(name, 'log');
      checkPosition('after', options.after);
      checkWait('waitMs', options.waitMs);
      const limit = pageLimit(options.limit);
      const { waitMs = 0, signal } = options;
      const how = { topic: topicOf(name), waitMs, signal };
      return lookAndWait(context.waiters, context.clock, how, async () => {
        context.assertOpen();
        const log = logs.get(name);
        const found = log === undefined ? [] : readPage(name, log, options.after, limit);
        return { found, dueInMs: Number.POSITIVE_INFINITY };
      });
    },
    async bounds(name) {
      checkName(name, 'log');
      context.assertOpen();
      return { last: lastOf(name), trimmedThrough: logs.get(name)?.trimmedThrough ?? 0 };
    },
    async trim(name, through) {
      checkName(name, 'log');
      checkPosition('through', through);
      context.assertOpen();
      const log = logs.get(name);
      if (log === undefined) return;
      const last = lastOf(name);
      const trimmed = log.entries.filter(({ sequence }) => sequence <= through && sequence < last);
      log.trimmedThrough = trimmed.at(-1)?.sequence ?? log.trimmedThrough;
      log.entries.splice(0, trimmed.length);
      context.waiters.wake(topicOf(name));
    },
    async remove(name) {
      checkName(name, 'log');
      context.assertOpen();
      logs.delete(name);
    },
  };
}

function readPage(name: string, log: Log, after: number, limit: number): readonly LogEntry[] {
  if (after < log.trimmedThrough) throw logTrimmed(name, log.trimmedThrough);
  const found: LogEntry[] = [];
  let bytes = 0;
  let start = log.entries.length;
  while (start > 0 && (log.entries[start - 1]?.sequence ?? 0) > after) start -= 1;
  for (const { sequence, value } of log.entries.slice(start, start + limit)) {
    bytes += value.byteLength;
    if (found.length > 0 && bytes > PAGE_BYTES_MAX) break;
    found.push({ sequence, value: value.slice() });
  }
  return found;
}
