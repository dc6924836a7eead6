/** Rows of the table that this suite does not check, each with who does or what it waits for. */
import type { Row } from './rows.ts';

const GRADING = 'tests/security/grading.test.ts';

export const OTHER_ROWS: readonly Row[] = [
  {
    ...{ id: 42, name: 'git-dig', expected: 'nothing of the removed history' },
    shownBy: 'tests/integration/layers-history.test.ts',
  },
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
    shownBy: GRADING,
  },
  {
    ...{ id: 11, name: 'grade-early-exit', expected: '`grade-invalid`' },
    shownBy: GRADING,
  },
  {
    ...{ id: 13, name: 'grade-tool-shadow', expected: 'refused, or shadowed by the platform' },
    shownBy: GRADING,
  },
  {
    ...{ id: 14, name: 'grade-time', expected: 'what the solver left running is absent' },
    shownBy: GRADING,
  },
];
