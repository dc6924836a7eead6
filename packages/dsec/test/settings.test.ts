import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { resolveSettings, settingOf } from '../src/command-line/settings.ts';

const root = mkdtempSync(join(tmpdir(), 'dsec-settings-'));
afterAll(() => rmSync(root, { recursive: true }));

const file = join(root, 'dsec.json');
const named = join(root, 'named.json');
const write = (path: string, value: unknown) => {
  writeFileSync(path, typeof value === 'string' ? value : JSON.stringify(value));
};
const resolve = (options: object, environment: Record<string, string> = {}) =>
  resolveSettings({ options: { state: root, ...options }, environment });
const invalid = expect.objectContaining({ code: 'invalid-argument' });

describe('resolveSettings', () => {
  it('takes the default, then the file, then the environment, then the option', () => {
    rmSync(file, { force: true });
    expect(resolve({}).listen).toEqual({ value: '127.0.0.1:7720', source: 'default' });
    write(file, { listen: '127.0.0.1:1', keepEndedMs: 5 });
    expect(resolve({}).listen).toEqual({ value: '127.0.0.1:1', source: `file ${file}` });
    expect(settingOf(resolve({}), 'keepEndedMs')).toBe('5');
    const environment = { DSEC_LISTEN: '127.0.0.1:2', DSEC_BACKEND: '' };
    expect(resolve({}, environment)).toMatchObject({
      listen: { value: '127.0.0.1:2', source: 'environment DSEC_LISTEN' },
      backend: { value: 'container', source: 'default' },
    });
    expect(resolve({ listen: '127.0.0.1:3' }, environment).listen).toEqual({
      ...{ value: '127.0.0.1:3', source: 'option --listen' },
    });
  });

  it('reads the file that is named instead, and that must be there', () => {
    write(file, { listen: '127.0.0.1:1' });
    write(named, { listen: '127.0.0.1:9' });
    expect(resolve({ config: named }).listen?.value).toBe('127.0.0.1:9');
    expect(resolve({}, { DSEC_CONFIG: named }).listen?.value).toBe('127.0.0.1:9');
    expect(() => resolve({ config: join(root, 'absent') })).toThrow(invalid);
  });

  it('makes the state directory absolute, and takes no empty one', () => {
    expect(resolve({ state: 'here' }).state?.value).toBe(join(process.cwd(), 'here'));
    expect(() => resolve({ state: '' })).toThrow(invalid);
  });

  it.each([
    ['no JSON', '{'],
    ['a list', []],
    ['a key that it does not know', { lisen: 'x' }],
    ['a key that has no place in a file', { apiKey: 'dsec_x' }],
    ['a prototype', '{"__proto__": "x"}'],
    ['a value of another kind', { listen: true }],
    ['an empty value', { listen: '' }],
    ['too much', `{"listen": "${'x'.repeat(70_000)}"}`],
  ])('refuses a file with %s', (_what, content) => {
    write(file, content);
    expect(() => resolve({})).toThrow(invalid);
  });
});
