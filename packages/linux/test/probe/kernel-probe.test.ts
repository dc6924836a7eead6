import { expect, it } from 'vitest';
import { BPF_KINDS } from '../../src/probe/facts.ts';
import {
  listSecurityModules,
  probeBpf,
  probeCoreScheduling,
  probeFuse,
  probeLandlock,
} from '../../src/probe/kernel-probe.ts';

it('answers every question without throwing', () => {
  const outcomes = [probeFuse(), probeCoreScheduling(), ...Object.values(probeBpf())];
  for (const outcome of outcomes) expect(['works', 'fails', 'untried']).toContain(outcome.state);
  expect(Object.keys(probeBpf())).toEqual([...BPF_KINDS]);
});

it('tells a version of Landlock exactly when there is one', () => {
  const landlock = probeLandlock();
  expect(landlock.abi !== undefined).toBe(landlock.state === 'works');
});

it('lists security modules by name', () => {
  expect(listSecurityModules() ?? ['capability']).toContain('capability');
});
