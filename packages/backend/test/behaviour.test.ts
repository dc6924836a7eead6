import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { BEHAVIOUR, backendConformance, behaviourTable } from '../src/conformance/conformance.ts';
import { openSimHarness } from './sim-harness.ts';

const GUIDE = new URL('../../../docs/guides/backends.md', import.meta.url);

test('each row of the table is a case that is left out nowhere', () => {
  const cases = new Map(backendConformance(() => openSimHarness()).map((one) => [one.name, one]));
  for (const { what, case: name } of BEHAVIOUR) {
    expect(cases.get(name), what).toMatchObject({ skip: undefined });
  }
  expect(new Set(BEHAVIOUR.map((row) => row.case)).size).toBe(BEHAVIOUR.length);
});

test('the guide shows the table as it is', () => {
  expect(readFileSync(GUIDE, 'utf8')).toContain(behaviourTable());
});
