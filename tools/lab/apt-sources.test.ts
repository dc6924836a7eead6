import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { hasCommand } from '../bootstrap/host.mjs';
import { privateApt } from './apt.mjs';
import { deriveSources } from './apt-sources.mjs';

const DEB822 = {
  path: '/etc/apt/sources.list.d/debian.sources',
  text: [
    'Types: deb deb-src',
    'URIs: http://mirror.example/debian',
    'Suites: bookworm bookworm-updates',
    'Components: main contrib',
    'Signed-By: /usr/share/keyrings/debian.gpg',
    '',
    'Types: deb',
    'URIs: http://tools.example/apt',
    'Suites: nodistro',
    'Components: main',
    '',
  ].join('\n'),
};

const ONE_LINE = {
  path: '/etc/apt/sources.list',
  text: [
    'deb [arch=amd64 signed-by=/keys/ubuntu.gpg] http://mirror.example/ubuntu noble main universe',
    '# deb http://mirror.example/ubuntu noble-proposed main',
    'deb http://mirror.example/ubuntu noble-security main',
    'deb http://other.example/ppa jammy main',
  ].join('\n'),
};

it('keeps the distribution, its mirror and key, and adds backports where asked', () => {
  const expected = [
    'Types: deb',
    'URIs: http://mirror.example/debian',
    'Suites: bookworm bookworm-updates',
    'Components: main contrib',
    'Signed-By: /usr/share/keyrings/debian.gpg',
    '',
  ];
  expect(deriveSources([DEB822], 'bookworm', false)).toBe(expected.join('\n'));
  const backports = expected.map((line) => line.replace(/^Suites.*/, 'Suites: bookworm-backports'));
  expect(deriveSources([DEB822], 'bookworm', true)).toBe([...expected, ...backports].join('\n'));
});

it('adds no backports that are there already', () => {
  const own = { path: 'a.list', text: 'deb http://mirror.example/debian bookworm-backports main' };
  const text = deriveSources([DEB822, own], 'bookworm', true);
  expect(text.match(/bookworm-backports/g)).toHaveLength(1);
});

it('reads the older form, with options', () => {
  const text = deriveSources([ONE_LINE], 'noble', false);
  expect(text.split('\n\n')).toHaveLength(2);
  expect(text).toContain('Suites: noble\nComponents: main universe\nArchitectures: amd64\n');
  expect(text).toContain('Suites: noble-security\nComponents: main\n');
  expect(text).not.toMatch(/jammy|proposed/);
});

it('is empty where the distribution itself is not configured', () => {
  expect(deriveSources([DEB822], 'trixie', true)).toBe('');
});

it('gives apt nothing else to look at', (context) => {
  context.skip(!hasCommand('apt-get'), 'this machine has no apt');
  const folder = mkdtempSync(join(tmpdir(), 'dsec-lab-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  privateApt(folder, deriveSources([DEB822], 'bookworm', true));
  const args = ['-c', join(folder, 'apt.conf'), '--print-uris', 'update'];
  const { stdout } = spawnSync('apt-get', args, { encoding: 'utf8' });
  const uris = [...stdout.matchAll(/^'([^']+)'/gm)].map((match) => match[1] ?? '');
  const hosts = new Set(uris.map((uri) => new URL(uri).host));
  expect([...hosts]).toEqual(['mirror.example']);
  expect(readdirSync(folder).sort()).toEqual(['apt.conf', 'cache', 'etc', 'lists']);
});
