/**
 * The table of hostile actions against sandboxes on containers: each row's attack is shown to work without
 * protections first, and what became of it is read from the host. Rows whose part does not exist yet are
 * listed as skipped, with what they wait for.
 */
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type NetworkWorld, openNetworkWorld } from './network-world.ts';
import { expectPoolShared, POOLS } from './pools.ts';
import { AGENT_ROWS } from './rows-agent.ts';
import { API_ROWS } from './rows-api.ts';
import { CRASH_ROWS } from './rows-crash.ts';
import { ESCAPE_ROWS } from './rows-escape.ts';
import { FILE_ROWS } from './rows-files.ts';
import { NEIGHBOUR_ROWS } from './rows-neighbours.ts';
import { NETWORK_ROWS } from './rows-network.ts';
import { OTHER_ROWS } from './rows-other.ts';
import { POLICY_ROWS } from './rows-policy.ts';
import type { SecurityWorld } from './security-world.ts';

const isRoot = process.getuid?.() === 0;

const ROWS = [
  ...[...AGENT_ROWS, ...FILE_ROWS, ...ESCAPE_ROWS],
  ...[...NEIGHBOUR_ROWS, ...CRASH_ROWS, ...API_ROWS, ...OTHER_ROWS],
  ...[...NETWORK_ROWS, ...POLICY_ROWS],
];
/** Those about an agent, escapes, files and neighbours that a container has to stand. */
const REQUIRED = [
  ...[
    2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14, 16, 17, 18, 21, 24, 25, 26, 29, 31, 32, 42, 44, 47, 48,
    49, 51, 52, 54,
  ],
  ...[
    55, 56, 57, 58, 63, 65, 66, 67, 68, 70, 71, 72, 74, 76, 77, 79, 80, 82, 83, 85, 86, 87, 88, 89,
    91, 92, 93, 99, 100,
  ],
  ...[110, 111, 112, 113, 114, 115],
  ...[120, 121, 122, 123, 124, 125, 126, 127, 128, 129],
];

it('has each row that a container has to stand, once', () => {
  const here = ROWS.filter((row) => !('waitsFor' in row)).map(({ id }) => id);
  expect(here.sort((a, b) => a - b)).toEqual(REQUIRED.sort((a, b) => a - b));
  expect(new Set(ROWS.map(({ id }) => id)).size).toBe(ROWS.length);
});

describe.skipIf(!isRoot)('hostile actions (needs root)', () => {
  let network: NetworkWorld;
  let world: SecurityWorld;

  beforeAll(async () => {
    network = await openNetworkWorld();
    world = network.world;
  });

  afterAll(async () => {
    const left = await network?.close();
    expect(left ?? []).toEqual([]);
  });

  for (const row of ROWS) {
    it(`${row.id} ${row.name}: ${row.expected}`, async (context) => {
      context.skip('waitsFor' in row, `waits for ${'waitsFor' in row ? row.waitsFor : ''}`);
      if ('shownBy' in row) expect(existsSync(row.shownBy)).toBe(true);
      if ('check' in row) await row.check(world, network);
    });
  }

  it.each(POOLS)('C1 host-wide pool: $kind', (pool) => expectPoolShared(world, pool));
});
