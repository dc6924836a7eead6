import { describe, expect, it } from 'vitest';
import { isAtLeast, overlayFormOf, parseKernelVersion } from '../src/kernel-version.ts';

describe('versions', () => {
  it.each([
    ['6.12.43+deb13-cloud-amd64', 6, 12, 43],
    ['6.8.0-60-generic', 6, 8, 0],
    ['5.10', 5, 10, 0],
    ['7.0-rc3', 7, 0, 0],
    ['6.6.87.2-microsoft-standard-WSL2', 6, 6, 87],
  ])('reads kernel %s', (release, major, minor, patch) => {
    expect(parseKernelVersion(release)).toEqual({ major, minor, patch });
  });

  it('does not invent a version', () => {
    expect(parseKernelVersion('custom')).toBeUndefined();
  });

  it.each([
    ['6.12.0', 6, 12, true],
    ['6.13.1', 6, 12, true],
    ['7.1.0', 6, 12, true],
    ['6.9.9', 6, 12, false],
    ['5.19.0', 6, 12, false],
  ])('%s is at least %i.%i: %s', (release, major, minor, answer) => {
    const version = parseKernelVersion(release);
    expect(version && isAtLeast(version, major, minor)).toBe(answer);
  });
});

it.each([
  ['6.18.44', 'descriptor'],
  ['6.15.0-rc1', 'descriptor'],
  ['6.14.0-27-generic', 'path'],
  ['6.12.43+deb13-amd64', 'path'],
  ['weird', 'path'],
])('gives layers on %s by %s', (release, form) => {
  expect(overlayFormOf(release)).toBe(form);
});
