import { describe } from 'vitest';
import { describeBehaviour } from './aether-behaviour.ts';
import { isRoot } from './linux-support.ts';

describe('aether', () => {
  describeBehaviour('as an ordinary child', {});
});

describe.skipIf(!isRoot)('aether in namespaces (needs root)', () => {
  describeBehaviour('as process 1', { pidNamespace: true });
  describeBehaviour('with a user namespace for sessions', { sessions: true });
});
