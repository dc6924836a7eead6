import { closeSync, openSync } from 'node:fs';
import type { EdgeId } from '@dsec/std';
import { expect, test } from 'vitest';
import { createEdgeLog } from '../src/edge-log.ts';

test('a log that cannot be written, as on a full disk, ends nothing', () => {
  const fd = openSync('/dev/full', 'w');
  try {
    const log = createEdgeLog('e' as EdgeId, 'info', fd);
    for (let line = 0; line < 5000; line += 1) log.info({ line }, 'x'.repeat(200));
    expect(log.level).toBe('info');
  } finally {
    closeSync(fd);
  }
});
