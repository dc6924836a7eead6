import { closeSync, openSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createApiserverLog } from '../src/apiserver-log.ts';

test('a log that cannot be written, as on a full disk, ends nothing', () => {
  const fd = openSync('/dev/full', 'w');
  try {
    const log = createApiserverLog('info', fd);
    for (let line = 0; line < 5000; line += 1) log.info({ line }, 'x'.repeat(200));
    expect(log.level).toBe('info');
  } finally {
    closeSync(fd);
  }
});
