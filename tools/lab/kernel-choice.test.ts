import { expect, it } from 'vitest';
import { chooseKernel } from './kernel-choice.mjs';

const debian = (version: string) => `linux-image-${version}-cloud-amd64`;

it.each([
  [
    'the newest 6.12',
    [debian('6.12.9+deb12'), debian('6.12.43+deb12'), debian('6.1.0-40')],
    '6.12.43+deb12',
  ],
  ['6.12 before anything newer', [debian('6.16.3+deb13'), debian('6.12.9+deb13')], '6.12.9+deb13'],
  [
    'a rebuilt kernel before the first build',
    [debian('6.12.90+deb12'), debian('6.12.90+deb12.1')],
    '6.12.90+deb12.1',
  ],
  [
    'the nearest newer series',
    [debian('6.18.1+deb14'), debian('6.16.12+deb14'), debian('6.16.3+deb14')],
    '6.16.12+deb14',
  ],
])('takes %s', (_, names, expected) => {
  expect(chooseKernel(names)).toEqual({
    release: `${expected}-cloud-amd64`,
    image: debian(expected),
    modules: [],
  });
});

it('takes the modules that Ubuntu has in packages of their own', () => {
  const names = [
    'linux-image-6.8.0-31-generic',
    'linux-image-6.14.0-33-generic',
    'linux-image-unsigned-6.11.0-19-generic',
    'linux-image-generic-hwe-24.04',
    'linux-modules-6.14.0-33-generic',
    'linux-modules-extra-6.14.0-33-generic',
    'linux-modules-6.8.0-31-generic',
  ];
  expect(chooseKernel(names)).toEqual({
    release: '6.14.0-33-generic',
    image: 'linux-image-6.14.0-33-generic',
    modules: ['linux-modules-6.14.0-33-generic', 'linux-modules-extra-6.14.0-33-generic'],
  });
});

it('takes none that is older, for debugging, unsigned or for another machine', () => {
  const names = [
    debian('6.11.10'),
    `${debian('6.12.9+deb12')}-dbg`,
    `${debian('6.12.9')}-unsigned`,
  ];
  expect(chooseKernel([...names, 'linux-image-6.12.9+deb12-rt-amd64'])).toBeUndefined();
});
