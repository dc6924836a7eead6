import { closeSync } from 'node:fs';
import { isIPv4 } from 'node:net';
import { DsecError } from '@dsec/std';
import { inNetworkNamespace } from './network-namespace.ts';
import { syscall } from './syscall.ts';

export interface ListeningSocket {
  readonly kind: 'tcp' | 'udp';
  /** IPv4. */
  readonly address: string;
  readonly port: number;
}

const AF_INET = 2;
const SOCK_STREAM = 1;
const SOCK_DGRAM = 2;
const SOCK_CLOEXEC = 0o2_000_000;
const SOCK_NONBLOCK = 0o4_000;
const SOL_SOCKET = 1;
const SO_REUSEADDR = 2;
const BACKLOG = 1024;

/**
 * Makes bound sockets (those for TCP listen) inside another network namespace and gives their descriptors,
 * all or none. They stay there, whoever accepts from them. Needs root in both namespaces.
 */
export function openListeningSockets(
  namespaceFd: number,
  sockets: readonly ListeningSocket[],
): number[] {
  return inNetworkNamespace(namespaceFd, () => {
    const opened: number[] = [];
    try {
      for (const socket of sockets) opened.push(openSocket(socket));
      return opened;
    } catch (thrown) {
      for (const fd of opened) closeSync(fd);
      throw thrown;
    }
  });
}

function openSocket({ kind, address, port }: ListeningSocket): number {
  const name = `${kind} ${address} port ${port}`;
  const where = socketAddress(address, port);
  const type = (kind === 'tcp' ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK;
  const fd = syscall('socket', [AF_INET, type, 0], name);
  try {
    if (kind === 'tcp') {
      const on = Buffer.alloc(4);
      on.writeInt32LE(1);
      syscall('setsockopt', [fd, SOL_SOCKET, SO_REUSEADDR, on, on.length], name);
    }
    syscall('bind', [fd, where, where.length], name);
    if (kind === 'tcp') syscall('listen', [fd, BACKLOG], name);
    return fd;
  } catch (thrown) {
    closeSync(fd);
    throw thrown;
  }
}

/** struct sockaddr_in. */
function socketAddress(address: string, port: number): Buffer {
  if (!isIPv4(address) || !Number.isInteger(port) || port < 1 || port > 65_535) {
    throw new DsecError('invalid-argument', `${address} port ${port} is no place to listen at`);
  }
  const bytes = Buffer.alloc(16);
  bytes.writeUInt16LE(AF_INET, 0);
  bytes.writeUInt16BE(port, 2);
  Buffer.from(address.split('.').map(Number)).copy(bytes, 4);
  return bytes;
}
