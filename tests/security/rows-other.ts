/** Rows of the table that this suite does not check, each with who does or what it waits for. */
import type { Row } from './rows.ts';

const GRADING = 'grading (step E)';
const NETWORK = 'networks of sandboxes (step D)';

export const OTHER_ROWS: readonly Row[] = [
  {
    ...{
      id: 74,
      name: 'frame-abuse',
      expected: 'that sandbox ends as `protocol`; the edge stays bounded',
    },
    shownBy: 'tests/security/hostile-agent.test.ts',
  },
  {
    ...{ id: 10, name: 'grade-conftest', expected: 'the reward of an untouched solution' },
    waitsFor: GRADING,
  },
  {
    ...{ id: 11, name: 'grade-early-exit', expected: '`grade-invalid`' },
    waitsFor: GRADING,
  },
  {
    ...{ id: 13, name: 'grade-tool-shadow', expected: 'refused, or shadowed by the platform' },
    waitsFor: GRADING,
  },
  {
    ...{ id: 14, name: 'grade-time', expected: 'what the solver left running is absent' },
    waitsFor: GRADING,
  },
  {
    ...{ id: 79, name: 'dns-types', expected: 'only addresses of allowed names' },
    waitsFor: NETWORK,
  },
  {
    ...{ id: 80, name: 'dns-rebind', expected: 'private answers never count' },
    waitsFor: NETWORK,
  },
  {
    ...{ id: 82, name: 'host-reach', expected: 'nothing but DNS and proxy' },
    waitsFor: NETWORK,
  },
  {
    ...{ id: 83, name: 'revoke-open', expected: 'dead within a second' },
    waitsFor: NETWORK,
  },
  {
    ...{ id: 85, name: 'policy-race', expected: 'the last version, and no open window' },
    waitsFor: NETWORK,
  },
];
