import { describe } from 'vitest';
import { describeBehaviour } from './aether-behaviour.ts';
import { isRoot } from './linux-support.ts';

describe('aether', () => {
  describeBehaviour('as an ordinary child', {});
});

// Needs root: namespaces of processes and users.
describe.skipIf(!isRoot)('aether', () => {
  describeBehaviour('as process 1', { pidNamespace: true });
  describeBehaviour('with a user namespace for sessions', { sessions: true });
});
