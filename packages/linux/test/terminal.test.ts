import { closeSync, constants, openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { DsecError } from '@dsec/std';
import { expect, it } from 'vitest';
import { syscall } from '../src/syscall.ts';
import { stopOutputProcessing } from '../src/terminal.ts';

/** TCGETS; the settings of a pseudo-terminal are seen from both of its sides. */
function settingsOf(fd: number): Buffer {
  const settings = Buffer.alloc(64);
  syscall('ioctl', [fd, 0x5401, settings]);
  return settings;
}

it('stops it, and puts back every setting as it was', () => {
  const fd = openSync('/dev/ptmx', constants.O_RDWR | constants.O_NOCTTY);
  try {
    const before = settingsOf(fd);
    expect(before.readUInt32LE(4) & 1).toBe(1);
    const resume = stopOutputProcessing(fd);
    const stopped = settingsOf(fd);
    expect(stopped.readUInt32LE(4)).toBe(before.readUInt32LE(4) - 1);
    resume();
    expect(settingsOf(fd)).toEqual(before);
  } finally {
    closeSync(fd);
  }
});

it('refuses what is no terminal', () => {
  const fd = openSync(fileURLToPath(import.meta.url), 'r');
  expect(() => stopOutputProcessing(fd)).toThrow(DsecError);
  closeSync(fd);
});
