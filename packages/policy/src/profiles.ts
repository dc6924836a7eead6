import type { PolicyDocument } from './document.ts';

/**
 * Profiles that every node knows. `default` is what a sandbox without a policy has: all that the platform
 * gives, no network, and the platform's own tools as they are. `locked` leaves a place to work in and nothing
 * else to change. `open` is `default` without a word about files, to extend from nothing.
 */
export const BUILTIN_PROFILES: Readonly<Record<string, PolicyDocument>> = {
  open: {
    version: 1,
    description: 'All that the platform gives; no network.',
    network: [],
  },
  default: {
    version: 1,
    description: 'All that the platform gives; no network; the platform’s tools cannot be changed.',
    extends: 'open',
    files: [{ path: '/.dsec/**', access: ['read', 'exec'] }],
  },
  locked: {
    version: 1,
    description: 'Files are changed below /work and in temporary directories only.',
    extends: 'default',
    files: [
      { path: '/**', access: ['read', 'exec'] },
      { path: '/work/**', access: ['read', 'write', 'exec'] },
      { path: '/tmp/**', access: ['read', 'write', 'exec'] },
      { path: '/var/tmp/**', access: ['read', 'write', 'exec'] },
      { path: '/dev/**', access: ['read', 'write'] },
      { path: '/proc/**', access: ['read', 'write'] },
    ],
    sockets: [{ family: 'unix' }, { family: 'inet' }, { family: 'inet6' }],
    capabilities: ['chown', 'dac_override', 'fowner', 'fsetid', 'kill', 'setgid', 'setuid'],
  },
};
