import { ADMISSION_DEFAULTS, createAdmission, createHostProbe, type HostSample } from '@dsec/edge';
import { createManualClock, type DsecError, type SandboxId } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { HOST } from './core-world.ts';

const PLAN = { limits: { pidsMax: 1000 } } as Parameters<
  ReturnType<typeof createAdmission>['check']
>[0];

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
      admission.check(PLAN);
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
    ['pids', { pidMax: 1200 }],
    ['memory-pressure', { memoryPressurePct: 41 }],
    ['io-pressure', { ioPressurePct: 96 }],
  ] as const)('refuses by %s: %o', (limit, host) => {
    expect(open(host as Partial<HostSample>).refusal()).toBe(limit);
  });

  it('counts slots and process ids until nothing is left of a sandbox', () => {
    const { admission, refusal } = open({ pidMax: 5000 }, 4);
    for (const id of ['a', 'b', 'c', 'd']) {
      expect(refusal()).toBeUndefined();
      admission.add(id as SandboxId, PLAN);
    }
    expect(refusal()).toBe('slots');
    admission.remove('a' as SandboxId);
    admission.remove('a' as SandboxId);
    expect(refusal()).toBeUndefined();
    expect(admission.load()).toMatchObject({ admitting: true, pidsAvailable: 2000 });
  });

  it('takes into account what is being started and does not show yet', () => {
    const free = HOST.memoryTotalBytes * 0.05 + 40 * 2 ** 20;
    const { admission, refusal } = open({ memoryAvailableBytes: free });
    admission.add('a' as SandboxId, PLAN);
    expect(refusal()).toBeUndefined();
    admission.add('b' as SandboxId, PLAN);
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
