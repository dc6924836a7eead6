import { ROUTES } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import { expect, it } from 'vitest';
import { logRequest } from '../../src/http/request-log.ts';

function linesOf(answered: object): [level: string, line: unknown][] {
  const lines: [string, unknown][] = [];
  const at = (level: string) => (line: unknown) => void lines.push([level, line]);
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  const whole = { requestId: 'r1', durationMs: 1.23456, error: undefined, ...answered };
  logRequest(log as never, whole as never);
  return lines;
}

const call = (route: object) => ({
  principal: { caller: { project: 'ours', principal: 'me' }, entry: { id: 'sb-1' } },
  route,
  traceparent: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-00`,
  headers: { 'dsec-ticket': 'secret' },
  target: '/secret',
});

it('says who did what, and how it ended', () => {
  const error = new DsecError('not-found', 'secret');
  const answered = { operation: 'statFile', status: 404, error, call: call(ROUTES.statFile) };
  const [[level, line] = []] = linesOf(answered);
  expect(level).toBe('info');
  expect(line).toEqual({
    ...{ operation: 'statFile', status: 404, code: 'not-found', durationMs: 1.235 },
    ...{ requestId: 'r1', traceId: 'a'.repeat(32), sandbox: 'sb-1' },
    ...{ project: 'ours', principal: 'me' },
  });
});

it('is quiet about what only looks, and loud about faults', () => {
  const level = (answered: object) => linesOf(answered)[0]?.[0];
  expect(level({ status: 200, call: call(ROUTES.statFile) })).toBe('debug');
  expect(level({ status: 204, call: call(ROUTES.moveFile) })).toBe('info');
  expect(level({ status: 503, call: call(ROUTES.moveFile) })).toBe('warn');
  expect(level({ status: 401, call: undefined })).toBe('info');
});
