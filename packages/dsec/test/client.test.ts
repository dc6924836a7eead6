import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { hasLayerServer, serverOf } from '../src/client/connect.ts';
import { staysBelow } from '../src/client/copy/link-target.ts';
import { argumentBytes, baseName, joinPath, placeOf } from '../src/client/copy/place.ts';
import { createPool } from '../src/client/copy/pool.ts';
import { parseBytes, parseCount, parseDurationMs, parsePairs } from '../src/client/quantities.ts';
import { createOptionsOf } from '../src/client/sandbox-options.ts';
import { createEscape } from '../src/client/terminal.ts';

const invalid = expect.objectContaining({ code: 'invalid-argument' });
const root = mkdtempSync(join(tmpdir(), 'dsec-client-'));
afterAll(() => rmSync(root, { recursive: true }));

describe('quantities', () => {
  it.each([
    ['90s', 90_000],
    ['10m', 600_000],
    ['1.5h', 5_400_000],
    ['2d', 172_800_000],
    ['500ms', 500],
    ['7', 7000],
  ])('%s is a time', (text, ms) => expect(parseDurationMs(text, '--ttl')).toBe(ms));

  it.each([
    ['512M', 512 * 2 ** 20],
    ['4GiB', 4 * 2 ** 30],
    ['1.5g', 1.5 * 2 ** 30],
    ['100', 100],
    ['2 kb', 2048],
  ])('%s is a size', (text, bytes) => expect(parseBytes(text, '--memory')).toBe(bytes));

  it.each(['', '-1s', '1w', '0', 'x', '1e9s'])('%j is no time', (text) => {
    expect(() => parseDurationMs(text, '--ttl')).toThrow(invalid);
  });

  it.each(['', '-1', '4X', 'many', '99999999999999T'])('%j is no size', (text) => {
    expect(() => parseBytes(text, '--memory')).toThrow(invalid);
  });

  it('takes whole numbers within limits, and pairs', () => {
    expect(parseCount('64', '--count', 1, 100)).toBe(64);
    for (const text of ['0', '101', '1.5', '']) {
      expect(() => parseCount(text, '--count', 1, 100)).toThrow(invalid);
    }
    expect(parsePairs(['A=1', 'B=x=y', 'A=2'], '--var')).toEqual({ A: '2', B: 'x=y' });
    expect(() => parsePairs(['=1'], '--var')).toThrow(invalid);
  });
});

describe('createOptionsOf', () => {
  it('turns options into what a sandbox is to be, ending soon without its client', () => {
    const flags = {
      env: 'example',
      cpus: '0.5',
      memory: '1G',
      ttl: '1h',
      job: 'j',
      label: ['a=b'],
      watchPath: ['/work/tests'],
    };
    expect(createOptionsOf(flags)).toEqual({
      ...{ environment: 'example', job: 'j', labels: { a: 'b' }, watchPaths: ['/work/tests'] },
      limits: { cpuMillicores: 500, memoryBytes: 2 ** 30 },
      ttl: { lifetimeMs: 3_600_000, idleMs: 120_000 },
    });
    expect(createOptionsOf({ layer: ['base/x:latest'], keep: true })).toEqual({
      layers: ['base/x:latest'],
    });
  });

  it.each([{}, { env: 'x', layer: ['y'] }, { env: 'x', cpus: 'all' }])('refuses %j', (flags) => {
    expect(() => createOptionsOf(flags)).toThrow(invalid);
  });
});

describe('serverOf', () => {
  const state = join(root, 'state');
  const other = join(root, 'other.json');
  mkdirSync(state);
  writeFileSync(join(state, 'client.json'), '{"url":"http://127.0.0.1:1","apiKey":"dsec_a"}');
  writeFileSync(other, '{"url":"http://127.0.0.1:2","apiKey":"dsec_b"}');
  const named = { value: state, source: 'option --state' };
  const usual = { value: state, source: 'default' };

  it('means the server of the state directory that was named', () => {
    const environment = { DSEC_URL: 'http://127.0.0.1:9', DSEC_API_KEY: 'dsec_z' };
    const settings = {
      url: { value: 'http://127.0.0.1:9', source: 'environment DSEC_URL' },
      apiKey: { value: 'dsec_z', source: 'environment DSEC_API_KEY' },
    };
    expect(serverOf({ ...settings, state: named }, environment).url).toBe('http://127.0.0.1:1');
    expect(serverOf({ ...settings, state: usual }, environment).url).toBe('http://127.0.0.1:9');
  });

  it('reads the client file that is set', () => {
    const client = { value: other, source: 'environment DSEC_CLIENT' };
    expect(serverOf({ state: usual, client }, {})).toEqual({
      ...{ url: 'http://127.0.0.1:2', apiKey: 'dsec_b', keyFile: other },
    });
  });
});

describe('hasLayerServer', () => {
  const usual = { value: root, source: 'default' };
  const url = (source: string) => ({ value: 'http://127.0.0.1:9', source });
  const home = join(root, 'home');

  it('is so where a server is named, and not where a state directory is', () => {
    const named = { value: root, source: 'option --state' };
    const fromEnvironment = url('environment DSEC_URL');
    const client = { value: 'x', source: 'environment DSEC_CLIENT' };
    expect(hasLayerServer({ state: usual, url: fromEnvironment }, home)).toBe(true);
    expect(hasLayerServer({ state: usual, client }, home)).toBe(true);
    expect(hasLayerServer({ state: named, url: fromEnvironment, client }, home)).toBe(false);
    expect(hasLayerServer({ state: named, url: url('option --url') }, home)).toBe(true);
  });

  it('knows the client file of the user', () => {
    expect(hasLayerServer({ state: usual }, home)).toBe(false);
    mkdirSync(join(home, '.config/dsec'), { recursive: true });
    writeFileSync(join(home, '.config/dsec/client.json'), '{}');
    expect(hasLayerServer({ state: usual }, home)).toBe(true);
  });
});

describe('createEscape', () => {
  const type = (...pieces: string[]) => {
    const watch = createEscape();
    let pass = '';
    for (const piece of pieces) {
      const seen = watch(Buffer.from(piece));
      pass += seen.pass.toString();
      if (seen.leave) return [pass, 'left'];
    }
    return [pass, 'stays'];
  };

  it('leaves at ~. on a line of its own, however it arrives', () => {
    expect(type('ls\r~.')).toEqual(['ls\r', 'left']);
    expect(type('ls\r', '~', '.')).toEqual(['ls\r', 'left']);
    expect(type('~.')).toEqual(['', 'left']);
  });

  it('passes everything else, and ~~ as one', () => {
    expect(type('cd ~.\r~x~~.\r')).toEqual(['cd ~.\r~x~~.\r', 'stays']);
    expect(type('a\r~~.')).toEqual(['a\r~.', 'stays']);
  });
});

describe('staysBelow', () => {
  it.each([
    ['x', 0, true],
    ['x/y', 0, true],
    ['./x', 0, true],
    ['../x', 1, true],
    ['..', 1, true],
    ['../x', 0, false],
    ['../../x', 1, false],
    ['/etc/passwd', 3, false],
    ['x/../../../y', 3, false],
    ['x/..', 1, false],
    ['', 1, false],
  ])('%j at depth %i: %s', (target, depth, stays) => {
    expect(staysBelow(Buffer.from(target), depth)).toBe(stays);
  });
});

describe('places', () => {
  it('tells a path in a sandbox from one that is here', () => {
    const id = 'sb-local-local-abcdefghijklmnop';
    expect(placeOf(Buffer.from(`${id}:/a b:c`))).toEqual({
      ...{ kind: 'sandbox', sandboxId: id, path: Buffer.from('/a b:c') },
    });
    expect(placeOf(Buffer.from('./sb-x:y')).kind).toBe('local');
    expect(placeOf(Buffer.from('-')).kind).toBe('stream');
    const odd = Buffer.from([0x2f, 0xff]);
    expect(placeOf(odd)).toEqual({ kind: 'local', path: odd });
    expect(() => placeOf(Buffer.from(`${id}:`))).toThrow(invalid);
    expect(() => placeOf(Buffer.from(''))).toThrow(invalid);
  });

  it('takes paths apart and together', () => {
    expect(baseName(Buffer.from('/a/b//'))).toEqual(Buffer.from('b'));
    for (const path of ['/', '.', 'a/..', '']) {
      expect(() => baseName(Buffer.from(path))).toThrow(invalid);
    }
    expect(joinPath(Buffer.from('/'), Buffer.from('x')).toString()).toBe('/x');
    expect(joinPath(Buffer.from('/a'), Buffer.from('x')).toString()).toBe('/a/x');
    expect(argumentBytes(['ä', 'b'])).toEqual([Buffer.from('ä'), Buffer.from('b')]);
  });
});

describe('createPool', () => {
  it('runs so many at a time, and tells the first failure', async () => {
    const pool = createPool(2);
    let running = 0;
    let most = 0;
    const work = async () => {
      running += 1;
      most = Math.max(most, running);
      await new Promise((resolve) => setImmediate(resolve));
      running -= 1;
    };
    for (let i = 0; i < 6; i += 1) await pool.add(work);
    await pool.finish();
    expect(most).toBe(2);
    await pool.add(async () => Promise.reject(new Error('first')));
    await expect(pool.finish()).rejects.toThrow('first');
    await expect(pool.add(work)).rejects.toThrow('first');
    await pool.settle();
  });
});
