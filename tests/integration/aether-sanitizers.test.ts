import { execFileSync } from 'node:child_process';
import { describe } from 'vitest';
import { describeBehaviour } from './aether-behaviour.ts';

execFileSync('make', ['-C', new URL('../../native', import.meta.url).pathname, 'aether-asan'], {
  stdio: 'ignore',
});

describe('aether under ASan and UBSan', () => {
  describeBehaviour('as an ordinary child', { binary: 'aether-asan' });
});
