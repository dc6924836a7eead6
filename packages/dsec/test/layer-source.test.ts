import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { importLimitsOf, importSourceOf } from '../src/commands/layer-source.ts';

describe('importSourceOf', () => {
  it.each([
    ['-', { type: 'auto' }, { kind: 'tar', fd: 0 }],
    ['-', { type: 'tar' }, { kind: 'tar', fd: 0 }],
    ['x', { type: 'auto' }, { kind: 'auto', path: resolve('x') }],
    ['/x', { type: 'tar' }, { kind: 'tar', path: '/x' }],
    ['/x', { type: 'directory' }, { kind: 'directory', path: '/x' }],
    [
      '/x',
      { type: 'auto', overlayUpper: true },
      { kind: 'directory', path: '/x', overlayUpper: 'trusted' },
    ],
    [
      '/x',
      { type: 'oci-layout', platform: 'linux/arm64', reference: 'a' },
      { kind: 'oci-layout', path: '/x', platform: 'linux/arm64', reference: 'a' },
    ],
  ])('reads %s with %j', (path, options, expected) => {
    expect(importSourceOf(path, options)).toEqual(expected);
  });

  it('refuses an empty source, which would mean the working directory', () => {
    expect(() => importSourceOf('', { type: 'auto' })).toThrowError(/source is empty/);
  });

  it('refuses a type that it does not know, and an image on standard input', () => {
    expect(() => importSourceOf('/x', { type: 'zip' })).toThrowError(/--type is one of/);
    expect(() => importSourceOf('-', { type: 'docker-archive' })).toThrowError(/standard input/);
  });
});

describe('importLimitsOf', () => {
  it('reads pairs of a limit and a number', () => {
    expect(importLimitsOf([])).toEqual({});
    expect(importLimitsOf(['entriesMax=2000000', 'depthMax=9'])).toEqual({
      entriesMax: 2_000_000,
      depthMax: 9,
    });
  });

  it.each([
    'entries=1',
    '__proto__=1',
    'entriesMax',
    'entriesMax=',
    'entriesMax=-1',
    'depthMax=1e3',
  ])('refuses %s', (pair) => {
    expect(() => importLimitsOf([pair])).toThrowError(/--limit/);
  });
});
