import { closeSync, readSync, writeSync } from 'node:fs';
import { syscallError } from './errno.ts';
import { inNetworkNamespace } from './network-namespace.ts';
import { syscall } from './syscall.ts';

const AF_NETLINK = 16;
const SOCK_RAW = 3;
const SOCK_CLOEXEC = 0o2_000_000;
const NETLINK_ROUTE = 0;

const NEW_QUEUE = 36;
const NEW_FILTER = 44;
const REQUEST = 1;
const ACKNOWLEDGE = 4;
const REPLACE = 0x100;
const CREATE = 0x400;

const KIND = 1;
const OPTIONS = 2;
const BPF_FD = 6;
const BPF_NAME = 7;
const BPF_FLAGS = 8;
const DIRECT_ACTION = 1;

/** The place where both directions of a device are looked at, and the two directions in it. */
const CLSACT = { handle: 0xffff_0000, parent: 0xffff_fff1 };
const PARENTS = { ingress: 0xffff_fff2, egress: 0xffff_fff3 } as const;
/** Of all protocols, before every other one. */
const FIRST_OF_ALL = 0x0001_0300;
const ANSWER_BYTES = 4_096;

export interface DeviceFilters {
  readonly namespaceFd: number;
  /** Number of the device there. */
  readonly index: number;
  /** Descriptors of programs of the kind `sched_cls`. */
  readonly ingress: number;
  readonly egress: number;
}

/**
 * Puts a BPF program before all packets of a device, for each direction, in place of those that were put
 * there so before; they go with the device. It takes microseconds, where a link of the newer kind (tcx)
 * waits for all processors to have come by, with the lock of all network configuration held.
 */
export function filterDevice({ namespaceFd, index, ingress, egress }: DeviceFilters): void {
  inNetworkNamespace(namespaceFd, () => {
    const fd = syscall('socket', [AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE], 'netlink');
    try {
      const queue = message(NEW_QUEUE, { index, ...CLSACT, info: 0 }, [text(KIND, 'clsact')]);
      request(fd, queue, `queue of device ${index}`);
      for (const [parent, program] of [
        [PARENTS.ingress, ingress],
        [PARENTS.egress, egress],
      ] as const) {
        const options = [
          number(BPF_FD, program),
          text(BPF_NAME, 'dsec'),
          number(BPF_FLAGS, DIRECT_ACTION),
        ];
        const place = { index, handle: 1, parent, info: FIRST_OF_ALL };
        const attributes = [text(KIND, 'bpf'), attribute(OPTIONS, Buffer.concat(options))];
        request(fd, message(NEW_FILTER, place, attributes), `filter of device ${index}`);
      }
    } finally {
      closeSync(fd);
    }
  });
}

interface Place {
  readonly index: number;
  readonly handle: number;
  readonly parent: number;
  readonly info: number;
}

/** struct nlmsghdr, struct tcmsg and attributes. */
function message(type: number, place: Place, attributes: readonly Buffer[]): Buffer {
  const head = Buffer.alloc(36);
  head.writeUInt16LE(type, 4);
  head.writeUInt16LE(REQUEST | ACKNOWLEDGE | CREATE | REPLACE, 6);
  head.writeUInt32LE(1, 8);
  head.writeInt32LE(place.index, 20);
  head.writeUInt32LE(place.handle, 24);
  head.writeUInt32LE(place.parent, 28);
  head.writeUInt32LE(place.info, 32);
  const whole = Buffer.concat([head, ...attributes]);
  whole.writeUInt32LE(whole.length, 0);
  return whole;
}

function attribute(type: number, value: Buffer): Buffer {
  const padded = Buffer.alloc(4 + Math.ceil(value.length / 4) * 4);
  padded.writeUInt16LE(4 + value.length, 0);
  padded.writeUInt16LE(type, 2);
  value.copy(padded, 4);
  return padded;
}

const text = (type: number, value: string) => attribute(type, Buffer.from(`${value}\0`, 'latin1'));

function number(type: number, value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return attribute(type, bytes);
}

/** The kernel answers before `write` returns: an error number, negative, 0 for none. */
function request(fd: number, bytes: Buffer, subject: string): void {
  writeSync(fd, bytes);
  const answer = Buffer.alloc(ANSWER_BYTES);
  readSync(fd, answer);
  const code = answer.readInt32LE(16);
  if (code !== 0) throw syscallError('sendmsg', -code, subject);
}
