import { ADMISSION_DEFAULTS, createAdmission, createHostProbe, type HostSample } from '@dsec/edge';
import { createManualClock, type DsecError, type SandboxId } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { HOST } from './core-world.ts';

function open(changes: Partial<HostSample> = {}, slotsMax = 100) {
  const clock = createManualClock();
  const host = { ...HOST, ...changes };
  let probes = 0;
  const probe = () => {
    probes += 1;
    return { ...host };
  };
  const admission = createAdmission({ ...ADMISSION_DEFAULTS, slotsMax }, probe, clock);
  const refusal = () => {
    try {
      admission.check();
    } catch (thrown) {
      expect((thrown as DsecError).code).toBe('overloaded');
      return (thrown as DsecError).details.limit;
    }
    return undefined;
  };
  return { admission, clock, host, refusal, probes: () => probes };
}

describe('check', () => {
  it.each([
    [undefined, {}],
    [undefined, { cpuPressurePct: 100 }],
    [undefined, { cpuPressurePct: undefined, memoryPressurePct: undefined }],
    ['memory', { memoryAvailableBytes: HOST.memoryTotalBytes * 0.05 }],
    ['disk', { diskAvailableBytes: HOST.diskTotalBytes * 0.099 }],
    [undefined, { diskAvailableBytes: HOST.diskTotalBytes * 0.101 }],
    ['pids', { pidMax: 1000, pidsUsed: 793 }],
    [undefined, { pidMax: 1000, pidsUsed: 792 }],
    [
      'memory-pressure',
      { memoryPressurePct: 41, memoryAvailableBytes: HOST.memoryTotalBytes * 0.24 },
    ],
    // Sandboxes at their own limits, on a host that has enough.
    [undefined, { memoryPressurePct: 90, memoryAvailableBytes: HOST.memoryTotalBytes * 0.26 }],
    ['io-pressure', { ioPressurePct: 96 }],
  ] as const)('refuses by %s: %o', (limit, host) => {
    expect(open(host as Partial<HostSample>).refusal()).toBe(limit);
  });

  it('counts slots until nothing is left of a sandbox', () => {
    const { admission, refusal } = open({ pidMax: 5000 }, 4);
    for (const id of ['a', 'b', 'c', 'd']) {
      expect(refusal()).toBeUndefined();
      admission.add(id as SandboxId);
    }
    expect(refusal()).toBe('slots');
    admission.remove('a' as SandboxId);
    admission.remove('a' as SandboxId);
    expect(refusal()).toBeUndefined();
    expect(admission.load()).toMatchObject({ admitting: true, pidsAvailable: 3900 });
  });

  it('takes thousands of sandboxes on a host as it comes, and none when they use it up', () => {
    const { admission, clock, host, refusal } = open({ pidMax: 32_768, pidsUsed: 300 }, 8192);
    for (let n = 0; n < 2500; n += 1) {
      expect(refusal()).toBeUndefined();
      admission.add(`${n}` as SandboxId);
      admission.started(`${n}` as SandboxId);
      Object.assign(host, { pidsUsed: 300 + 2 * n });
      clock.advance(300);
    }
    Object.assign(host, { pidsUsed: 26_000 });
    clock.advance(300);
    expect(refusal()).toBe('pids');
    expect(admission.load()).toMatchObject({
      ...{ admitting: false, pidsAvailable: 214 },
      refusal: expect.stringMatching(/^pids: \d+ of 26214$/),
    });
  });

  it('takes into account what is being started and does not show yet', () => {
    const free = HOST.memoryTotalBytes * 0.05 + 40 * 2 ** 20;
    const { admission, refusal } = open({ memoryAvailableBytes: free });
    admission.add('a' as SandboxId);
    expect(refusal()).toBeUndefined();
    admission.add('b' as SandboxId);
    expect(refusal()).toBe('memory');
    admission.started('a' as SandboxId);
    expect(refusal()).toBeUndefined();
  });

  it('looks at the host again after a while, not for every request', () => {
    const { clock, host, refusal, probes } = open();
    for (let n = 0; n < 100; n += 1) refusal();
    expect(probes()).toBe(1);
    Object.assign(host, { diskAvailableBytes: 0 });
    clock.advance(300);
    expect(refusal()).toBe('disk');
  });

  it('tells of the load, and why it refuses', () => {
    const { admission } = open({ diskAvailableBytes: 5 });
    expect(admission.load()).toMatchObject({
      ...{ admitting: false, cpuCount: 4, diskAvailableBytes: 5, memoryPressurePct: 0 },
      refusal: expect.stringMatching(/^disk: \d+ of 5$/),
    });
  });
});

describe('createHostProbe', () => {
  it('sees this host', () => {
    const sample = createHostProbe(['/', '/tmp'])();
    expect(sample.memoryTotalBytes).toBeGreaterThan(sample.memoryAvailableBytes);
    expect(sample.diskTotalBytes).toBeGreaterThanOrEqual(sample.diskAvailableBytes);
    expect(sample.pidsUsed).toBeGreaterThan(1);
    expect(sample.pidMax).toBeGreaterThan(sample.pidsUsed);
    expect(sample.cpuCount).toBeGreaterThan(0);
  });
});
