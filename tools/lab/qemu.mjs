// @ts-check
import { execFileSync } from 'node:child_process';
import { isBelow } from '../bootstrap/host.mjs';
import { LabUnavailable } from './failure.mjs';

export const QEMU = 'qemu-system-x86_64';
/**
 * Its software emulation crashes Linux 6.12 now and then before that: of 7.2, 27 of 50 boots failed, of
 * 10.0 none of 90.
 */
const VERSION_MIN = [8, 2];
const PROCESSORS = 2;

/**
 * The channels between guest and host, in the order of their port numbers: in the guest
 * `/dev/virtio-ports/lab.<name>`, here a unix socket each.
 */
export const PORTS = /** @type {const} */ (['milestones', 'stdout', 'stderr', 'events', 'report']);

/**
 * @typedef {object} Machine
 * @property {'kvm' | 'tcg'} accelerator
 * @property {number} memoryMib
 * @property {string} kernel Path.
 * @property {string} initrd Path.
 * @property {readonly string[]} disks Paths of images; never written to.
 * @property {Readonly<Record<typeof PORTS[number], string>>} sockets Paths of unix sockets that listen.
 * @property {string} console Path of a file that gets the kernel's messages.
 * @property {boolean} terminal Ties the guest's hvc0 to our terminal.
 */

/**
 * @returns {string} The version of QEMU on PATH. Throws `LabUnavailable` when there is none that will do.
 */
export function qemuVersion() {
  let text = '';
  try {
    text = execFileSync(QEMU, ['--version'], { encoding: 'utf8' });
  } catch {
    throw new LabUnavailable(`the lab needs ${QEMU} on PATH (package qemu-system-x86)`);
  }
  const version = /version (\d+(?:\.\d+)+)/.exec(text)?.[1] ?? '0';
  if (isBelow(version, VERSION_MIN)) {
    throw new LabUnavailable(
      `QEMU ${version} is too old for the lab, it needs ${VERSION_MIN.join('.')}`,
    );
  }
  return version;
}

/**
 * The arguments of QEMU: a bare q35 without network that starts the kernel directly.
 *
 * @param {Machine} machine
 * @returns {string[]}
 */
export function qemuArguments(machine) {
  const accelerator =
    machine.accelerator === 'tcg' ? 'tcg,thread=multi,tb-size=512' : machine.accelerator;
  const disks = machine.disks.flatMap((path, index) => [
    '-drive',
    `if=none,id=disk${index},file=${escaped(path)},format=raw,snapshot=on,cache=unsafe`,
    '-device',
    `virtio-blk-pci,drive=disk${index}`,
  ]);
  const ports = PORTS.flatMap((name, index) => [
    '-chardev',
    `socket,id=${name},path=${escaped(machine.sockets[name])}`,
    '-device',
    `virtserialport,bus=ports.0,nr=${index + 1},chardev=${name},name=lab.${name}`,
  ]);
  const terminal = [
    ...['-chardev', 'stdio,id=terminal,signal=off'],
    ...['-device', `virtconsole,bus=ports.0,nr=${PORTS.length + 1},chardev=terminal`],
  ];
  return [
    ...['-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot', '-M', 'q35'],
    ...['-accel', accelerator, '-cpu', 'max', '-smp', `${PROCESSORS}`],
    ...['-m', `${machine.memoryMib}`],
    ...['-kernel', machine.kernel, '-initrd', machine.initrd, '-append', kernelArguments()],
    ...['-serial', `file:${machine.console}`, '-device', 'virtio-rng-pci'],
    ...['-device', 'virtio-serial-pci,id=ports'],
    ...disks,
    ...ports,
    ...(machine.terminal ? terminal : []),
  ];
}

function kernelArguments() {
  return [
    ...['console=ttyS0', 'quiet', 'panic=-1'],
    ...['cgroup_no_v1=all', 'apparmor=1', 'lsm=landlock,lockdown,yama,apparmor,bpf'],
    // Bounce buffers are of no use to this machine, and cost it 64 MiB.
    'swiotlb=noforce',
  ].join(' ');
}

/** A comma in a path ends an option's value, unless it is doubled. @param {string} path */
function escaped(path) {
  return path.replaceAll(',', ',,');
}
