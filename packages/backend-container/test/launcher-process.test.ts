import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MIB, parseEdgeId } from '@dsec/std';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startLauncher } from '../src/launcher-process.ts';

let stateRoot: string;

beforeEach(() => {
  stateRoot = mkdtempSync(join(tmpdir(), 'dsec-launcher-'));
});
afterEach(() => rmSync(stateRoot, { recursive: true }));

/** A program that takes the options of a launcher, and does as the script says. */
function start(script: string) {
  const program = join(stateRoot, 'program');
  writeFileSync(program, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  const edgeId = parseEdgeId('edge');
  return startLauncher({ program, agentProgram: '/bin/true', stateRoot, edgeId, edgeUid: 0 });
}

describe('startLauncher', () => {
  it('says what a launcher said that did not start', async () => {
    await expect(start('echo launcher: no cgroups; exit 1')).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringContaining('it ended: launcher: no cgroups'),
    });
    await expect(start('exit 1')).rejects.toThrow('no cgroups');
  });

  it('keeps a log of bounded length, and the one before it', async () => {
    const log = join(stateRoot, 'launcher.log');
    writeFileSync(log, 'x'.repeat(MIB));
    await expect(start('echo new; exit 1')).rejects.toThrow('it ended: new');
    expect(readFileSync(log, 'utf8')).toBe('new\n');
    expect(statSync(`${log}.1`).size).toBe(MIB);
    await expect(start('echo newer; exit 1')).rejects.toThrow('new; newer');
    expect(statSync(`${log}.1`).size).toBe(MIB);
  });
});
