import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { LIMITS } from '../../src/probe/limits.ts';
import { reportOf } from '../../src/probe/probe-host.ts';
import { debian13 } from './hosts.ts';

const reference = readFileSync(
  join(import.meta.dirname, '../../../../docs/reference/doctor.md'),
  'utf8',
);
const rows = new Map(
  [...reference.matchAll(/^\| `([a-z0-9._-]+)` \| (.*) \|$/gm)].map((row) => [row[1], row[2]]),
);

it('has a row for every check, in the order of the report', () => {
  const ids = reportOf(debian13).checks.map((check) => check.id);
  expect([...rows.keys()].filter((id) => id?.includes('.'))).toEqual(ids);
});

it('states the wanted value of every limit', () => {
  for (const { sysctl, wanted } of LIMITS) {
    expect(rows.get(`limit.${sysctl}`)).toBe(`at least ${wanted.toLocaleString('en-US')}`);
  }
});
