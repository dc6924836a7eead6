import { expect, it } from 'vitest';
import { fileSystemType, readSysctl } from '../src/host-files.ts';

it('names file systems', () => {
  expect(fileSystemType('/proc')).toBe('proc');
  expect(fileSystemType(Buffer.from('/sys'))).toBe('sysfs');
  expect(() => fileSystemType('/nonexistent')).toThrow('ENOENT');
});

it('reads kernel settings', () => {
  expect(readSysctl('kernel.pid_max')).toMatch(/^\d+$/);
  expect(readSysctl('kernel.no_such_setting')).toBeUndefined();
});
