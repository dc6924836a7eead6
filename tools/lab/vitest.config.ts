import { defineConfig } from 'vitest/config';

/**
 * How the guest runs the lab's tests: against the compiled packages, which Node loads by itself.
 * Transforming their sources takes five times as long as everything else on an emulated processor.
 */
export default defineConfig({
  test: {
    name: 'lab',
    include: ['tests/lab/**/*.test.ts'],
    pool: 'forks',
    maxWorkers: 1,
    isolate: false,
    testTimeout: 300_000,
    hookTimeout: 300_000,
    server: { deps: { external: [/\/packages\/[^/]+\/dist\//] } },
  },
});
