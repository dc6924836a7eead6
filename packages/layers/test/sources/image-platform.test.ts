import { describe, expect, it } from 'vitest';
import {
  formatPlatform,
  hostPlatform,
  matchesPlatform,
  parsePlatform,
} from '../../src/sources/image-platform.ts';
import { errorWith } from './scratch.ts';

it.each(['linux/amd64', 'linux/arm64/v8', 'linux/386', 'linux/mips64_le'])('reads %s', (text) => {
  expect(formatPlatform(parsePlatform(text))).toBe(text);
});

it.each([
  '',
  'linux',
  'linux/',
  '/amd64',
  'linux/amd64/',
  'linux/a/b/c',
  'Linux/amd64',
  'linux/../x',
])('refuses "%s"', (text) => {
  expect(() => parsePlatform(text)).toThrowError(errorWith('invalid-argument'));
});

describe('what fits', () => {
  const v8 = { os: 'linux', architecture: 'arm64', variant: 'v8' };
  it.each([
    ['linux/arm64', v8, true],
    ['linux/arm64/v8', v8, true],
    ['linux/arm64/v9', v8, false],
    ['linux/arm64', { os: 'linux', architecture: 'arm64', variant: null }, true],
    ['linux/amd64', v8, false],
    ['windows/arm64', v8, false],
  ])('%s', (wanted, offered, fits) => {
    expect(matchesPlatform(offered, parsePlatform(wanted))).toBe(fits);
  });
});

it('names this machine as images do', () => {
  const name = { x64: 'amd64', arm64: 'arm64' }[process.arch as string];
  if (name !== undefined) expect(hostPlatform()).toEqual({ os: 'linux', architecture: name });
});
