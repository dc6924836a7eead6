import { DsecError } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import {
  compareLayerRefs,
  formatLayerRef,
  parseLayerRef,
  parseLayerSelector,
  selectVersion,
  sortVersions,
} from '../src/layer-ref.ts';

describe('parseLayerRef', () => {
  it.each(['base/debian:1.0.0', 'toolkit/c.c_c-9:0.0.1-rc.1', 'diff/d:10.20.30'])(
    'round-trips %s',
    (text) => {
      expect(formatLayerRef(parseLayerRef(text))).toBe(text);
    },
  );

  it.each([
    '',
    'debian',
    'base/debian',
    'base/debian:',
    'base/:1.0.0',
    '/debian:1.0.0',
    'os/debian:1.0.0',
    'base/debian:1',
    'base/debian:1.0',
    'base/debian:v1.0.0',
    'base/debian:=1.0.0',
    'base/debian: 1.0.0',
    'base/debian:01.0.0',
    'base/debian:2025.01.02',
    'base/debian:1.0.0+build',
    'base/debian:1.1000000000.0',
    'base/debian:1.0.0-RC1',
    'base/debian:latest',
    'base/debian:^1',
    'base/../x:1.0.0',
    'base/..:1.0.0',
    'base/a..b:1.0.0',
    'base/.hidden:1.0.0',
    'base/a/b:1.0.0',
    'base/debian:1.0.0/../../x',
    'base/de\0bian:1.0.0',
    'base/%2e%2e:1.0.0',
    'base/__proto__:1.0.0',
    '__proto__/x:1.0.0',
    'constructor/x:1.0.0',
    'base/dé:1.0.0',
    'base/Debian:1.0.0',
    'base/debian:1.0.0\n',
    `base/${'a'.repeat(129)}:1.0.0`,
    `base/debian:1.0.0-${'a'.repeat(1000)}`,
  ])('refuses %j', (text) => {
    expect(() => parseLayerRef(text)).toThrow(DsecError);
    expect(codeOf(() => parseLayerRef(text))).toBe('invalid-argument');
  });
});

describe('parseLayerSelector', () => {
  it.each(['latest', '^1', '^1.2', '^1.2.3', '~0', '~1.2', '1.2.3', '1.2.3-rc.1'])(
    'takes %s',
    (version) => {
      expect(parseLayerSelector(`base/debian:${version}`).version).toBe(version);
    },
  );

  it.each([
    '*',
    '>=1',
    '1',
    '1.x',
    '^',
    '^1.',
    '^1.2.3.4',
    '^01',
    '^1 || ^2',
    '^1.2.3-rc.1',
    'newest',
    '^9999999999',
  ])('refuses %s', (version) => {
    expect(codeOf(() => parseLayerSelector(`base/debian:${version}`))).toBe('invalid-argument');
  });
});

describe('selectVersion', () => {
  const versions = ['0.9.0', '1.0.0', '1.2.3', '1.10.0', '2.0.0-rc.1', '1.2.9', '0.0.3', '0.0.4'];

  it.each([
    ['latest', '1.10.0'],
    ['^1', '1.10.0'],
    ['^1.2', '1.10.0'],
    ['~1.2', '1.2.9'],
    ['~1.2.4', '1.2.9'],
    ['~1', '1.10.0'],
    ['^0.9', '0.9.0'],
    ['^0.0.3', '0.0.3'],
    ['^2', undefined],
    ['2.0.0-rc.1', '2.0.0-rc.1'],
    ['1.2.3', '1.2.3'],
    ['1.2.4', undefined],
  ])('%s is %s', (selector, expected) => {
    expect(selectVersion(selector, versions)).toBe(expected);
  });

  it('orders versions by meaning, not by spelling', () => {
    expect(sortVersions(['1.2.0', '1.10.0', '1.10.0-rc.2', '1.10.0-rc.10'])).toEqual([
      '1.10.0',
      '1.10.0-rc.10',
      '1.10.0-rc.2',
      '1.2.0',
    ]);
  });
});

function codeOf(call: () => unknown): string {
  try {
    call();
  } catch (thrown) {
    return thrown instanceof DsecError ? thrown.code : String(thrown);
  }
  return 'no error';
}

it('orders refs as listings do: kind, name, newest version', () => {
  const texts = [
    'base/a:1.10.0',
    'base/a:1.9.0',
    'base/b:0.1.0',
    'workspace/a:1.0.0',
    'diff/a:1.0.0',
  ];
  const refs = texts.map(parseLayerRef);
  expect([...refs].reverse().sort(compareLayerRefs).map(formatLayerRef)).toEqual(texts);
  expect(compareLayerRefs(parseLayerRef('base/a:1.0.0'), parseLayerRef('base/a:1.0.0'))).toBe(0);
});
