import { describe, expect, it } from 'vitest';
import { type Host, isBelow, judgeHost, parseOsRelease, readHost } from './host.mjs';

const HOST: Host = {
  platform: 'linux',
  arch: 'x64',
  family: 'debian',
  id: 'debian-12',
  codename: 'bookworm',
  title: 'Debian 12',
  isRoot: true,
  hasApt: true,
  kernel: '6.12.0',
  node: '20.19.0',
  npm: '9.2.0',
  processors: 2,
  distributionNode: false,
  nodeHeaders: undefined,
};

describe('parseOsRelease', () => {
  it.each([
    [
      'PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\nID=debian\n',
      {
        family: 'debian',
        id: 'debian-12',
        codename: 'bookworm',
        title: 'Debian GNU/Linux 12 (bookworm)',
      },
    ],
    [
      'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\nPRETTY_NAME=\'Ubuntu 24.04\'\n',
      { family: 'ubuntu', id: 'ubuntu-24.04', codename: 'noble', title: 'Ubuntu 24.04' },
    ],
    [
      'ID=linuxmint\nID_LIKE="ubuntu debian"\nVERSION_ID="22"\n',
      { family: 'ubuntu', id: 'linuxmint-22', codename: '', title: 'linuxmint' },
    ],
    [
      'ID=fedora\nVERSION_ID=42\n',
      { family: 'other', id: 'fedora-42', codename: '', title: 'fedora' },
    ],
    ['', { family: 'other', id: 'unknown-unknown', codename: '', title: 'unknown' }],
  ])('%j', (text, expected) => {
    expect(parseOsRelease(text)).toEqual(expected);
  });
});

describe('judgeHost', () => {
  it('finds nothing wrong with the least that is needed', () => {
    expect(judgeHost(HOST)).toEqual([]);
  });

  it.each<[Partial<Host>, RegExp]>([
    [{ platform: 'darwin' }, /runs on Linux only, this is darwin/],
    [
      { kernel: '6.1.0-44-amd64' },
      /Linux 6\.1\.0.* too old.*6\.12: apt-get install -t bookworm-backports/,
    ],
    [{ kernel: '6.8.0', id: 'ubuntu-24.04' }, /linux-generic-hwe-24\.04/],
    [{ node: '18.20.4' }, /Node 18\.20\.4 is too old.*20\.19/],
    [{ npm: '' }, /npm is not/],
    [{ npm: '8.19.4' }, /npm 8\.19\.4 is too old/],
  ])('%j', (change, fault) => {
    expect(judgeHost({ ...HOST, ...change })).toEqual([expect.stringMatching(fault)]);
  });

  it('names all faults at once', () => {
    expect(judgeHost({ ...HOST, kernel: '5.10.0', node: '16.0.0', npm: '8.0.0' })).toHaveLength(3);
  });
});

describe('isBelow', () => {
  it.each([
    ['6.11.9', [6, 12], true],
    ['6.12', [6, 12], false],
    ['6.12.0-rc1', [6, 12], false],
    ['7.0', [6, 12], false],
    ['5.99', [6, 12], true],
    ['6', [6, 12], true],
    ['nonsense', [6, 12], true],
  ])('%s against %j: %j', (version, least, expected) => {
    expect(isBelow(version, least)).toBe(expected);
  });
});

describe('readHost', () => {
  it('describes the machine that runs this test', () => {
    const host = readHost();
    expect(host.node).toBe(process.versions.node);
    expect(host.npm).toMatch(/^\d+\.\d+/);
    expect(host.platform).toBe(process.platform);
  });
});
