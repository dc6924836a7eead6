import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareExactness, GLOB_LIMITS, namedDepths, namesOf, parseGlob } from '../src/index.ts';
import { pathArbitrary, patternArbitrary, RUNS, regexOf, SEED } from './policy-arbitraries.ts';

const namesPath = (pattern: string, path: string) => {
  const names = namesOf(path);
  return namedDepths(parseGlob(pattern, 'path'), names).includes(names.length);
};

describe('patterns', () => {
  it.each([
    ['/', '/', true],
    ['/**', '/', true],
    ['/a', '/a', true],
    ['/a/**', '/a', true],
    ['/a/*', '/a', false],
    ['/a/*', '/a/b', true],
    ['/a/*', '/a/b/c', false],
    ['/*.py', '/x.py', true],
    ['/*.py', '/.py', true],
    ['/**/x', '/x', true],
    ['/**/x', '/a/b/x', true],
    ['/a/**/x', '/a/x', true],
    ['/a/**/x', '/b/x', false],
    ['/a?c', '/abc', true],
    ['/a?c', '/ac', false],
    ['/a\\*', '/a*', true],
    ['/a\\*', '/ab', false],
    ['/a\\?\\\\', '/a?\\', true],
    ['/[a]{b}', '/[a]{b}', true],
    ['/é*', '/été', true],
    // A wildcard stands for bytes, and é has two.
    ['/?', '/é', false],
    ['/??', '/é', true],
    ['/a*b*c', '/aXbYbZc', true],
    ['/a*b*c', '/aXbYbZ', false],
  ])('%s names %s: %s', (pattern, path, expected) => {
    expect(namesPath(pattern, path)).toBe(expected);
  });

  it('are the same with and without /** at the end', () => {
    expect(parseGlob('/a/**', 'x').text).toBe('/a');
    expect(parseGlob('/a/**/**', 'x').text).toBe('/a');
    expect(parseGlob('/**', 'x').text).toBe('/');
    expect(parseGlob('/a/**/**/b', 'x').text).toBe('/a/**/b');
  });

  it.each([
    ...[
      '',
      'a',
      '/a/',
      '//a',
      '/a//b',
      '/./a',
      '/../a',
      '/a**',
      '/**b',
      '/a\n',
      '/a\0',
      '/a\\',
      '/\\a',
    ],
    ...['/\ud800', `/${'a'.repeat(GLOB_LIMITS.nameBytes + 1)}`, `/${'é'.repeat(600)}`],
    ...['/*'.repeat(GLOB_LIMITS.wildcards + 1), '/a'.repeat(GLOB_LIMITS.segments + 1)],
  ])('%j is none, and the field is named', (pattern) => {
    const parse = () => parseGlob(pattern, 'files.3.path');
    expect(parse).toThrowError(
      expect.objectContaining({ code: 'invalid-argument', details: { field: 'files.3.path' } }),
    );
  });

  it('of two that name a path, the one with fewer wildcards wins', () => {
    const order = ['/a/b', '/a/b*', '/a/*', '/*/*', '/**/ab', '/**/a*'];
    const globs = order.map((text) => parseGlob(text, 'x'));
    expect(
      [...globs]
        .reverse()
        .sort(compareExactness)
        .map(({ text }) => text),
    ).toEqual(order);
  });

  it('match as the same regular expression does', () => {
    const property = fc.property(patternArbitrary, pathArbitrary, (pattern, path) => {
      const { text } = parseGlob(pattern, 'x');
      expect(namesPath(pattern, path)).toBe(regexOf(text).test(path === '/' ? '' : path));
    });
    fc.assert(property, { seed: SEED, numRuns: RUNS * 5 });
  });

  it('the worst pattern on the worst path takes bounded steps', () => {
    const pattern = parseGlob(`/${'a*'.repeat(15)}b`, 'x');
    const many = parseGlob('/**/a'.repeat(15), 'x');
    const path = `/${'a'.repeat(255)}`.repeat(15);
    expect(namedDepths(pattern, namesOf(path))).toEqual([]);
    expect(namedDepths(many, namesOf('/b'.repeat(2000)))).toEqual([]);
  });
});

describe('paths', () => {
  it.each(['', 'a', '/a/', '//', '/./a', '/a/..', '/\0', `/${'a'.repeat(4095)}`])(
    '%j is refused',
    (path) => {
      expect(() => namesOf(path)).toThrowError(
        expect.objectContaining({ code: 'invalid-argument', details: { field: 'path' } }),
      );
    },
  );
});
