import { closeSync, openSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { filterDevice } from '../src/traffic-filter.ts';

const isRoot = process.getuid?.() === 0;

test.skipIf(!isRoot)('says which device is not there (needs root)', () => {
  const namespaceFd = openSync('/proc/thread-self/ns/net', 'r');
  onTestFinished(() => closeSync(namespaceFd));
  const missing = { namespaceFd, index: 0x7fff_fff0, ingress: -1, egress: -1 };
  expect(() => filterDevice(missing)).toThrow(/queue of device 2147483632: ENODEV/);
});
