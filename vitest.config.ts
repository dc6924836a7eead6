import { defineConfig } from 'vitest/config';

// Tests run from source: the "source" export condition points at src/index.ts of every package.
const shared = {
  resolve: { conditions: ['source'] },
  ssr: { resolve: { conditions: ['source'] } },
};

export default defineConfig({
  ...shared,
  test: {
    projects: [
      {
        ...shared,
        test: {
          name: 'static',
          include: ['tools/tidy/*.check.ts'],
          pool: 'forks',
          testTimeout: 120_000,
        },
      },
      {
        ...shared,
        test: {
          name: 'unit',
          include: ['packages/*/test/**/*.test.ts', 'tools/**/*.test.ts', 'bench/**/*.test.ts'],
          pool: 'forks',
          testTimeout: 30_000,
        },
      },
      {
        ...shared,
        test: {
          name: 'integration',
          include: ['tests/integration/**/*.test.ts'],
          pool: 'forks',
          testTimeout: 120_000,
          hookTimeout: 120_000,
        },
      },
      {
        ...shared,
        test: {
          name: 'e2e',
          include: ['tests/e2e/**/*.test.ts'],
          pool: 'forks',
          testTimeout: 120_000,
          hookTimeout: 180_000,
        },
      },
      {
        ...shared,
        test: {
          name: 'security',
          include: ['tests/security/**/*.test.ts'],
          pool: 'forks',
          testTimeout: 240_000,
          hookTimeout: 120_000,
        },
      },
      {
        ...shared,
        test: {
          name: 'chaos',
          include: ['tests/chaos/**/*.test.ts'],
          pool: 'forks',
          testTimeout: 300_000,
        },
      },
      {
        ...shared,
        test: {
          name: 'fuzz',
          include: ['tests/fuzz/**/*.test.ts'],
          pool: 'forks',
          testTimeout: 300_000,
        },
      },
    ],
  },
});
