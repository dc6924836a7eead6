import { closeSync } from 'node:fs';
import { DsecError } from '@dsec/std';
import { errnoOf } from './errno.ts';
import { inNetworkNamespace } from './network-namespace.ts';
import { syscall } from './syscall.ts';

const AF_INET = 2;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2_000_000;
const SIOCGIFINDEX = 0x8933;
/** Of a name, with the byte that ends it. */
const NAME_BYTES = 16;
/** struct ifreq. */
const REQUEST_BYTES = 40;

/** The number of a device in another network namespace. `not-found`: there is none of that name. */
export function networkDeviceIndex(namespaceFd: number, name: string): number {
  const request = Buffer.alloc(REQUEST_BYTES);
  if (name === '' || request.write(name, 'latin1') >= NAME_BYTES) {
    throw new DsecError('invalid-argument', `${name} is no name of a device`);
  }
  return inNetworkNamespace(namespaceFd, () => {
    const fd = syscall('socket', [AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0], name);
    try {
      syscall('ioctl', [fd, SIOCGIFINDEX, request], name);
      return request.readInt32LE(NAME_BYTES);
    } catch (thrown) {
      if (errnoOf(thrown) !== 'ENODEV') throw thrown;
      throw new DsecError('not-found', `there is no device ${name}`, { cause: thrown });
    } finally {
      closeSync(fd);
    }
  });
}
