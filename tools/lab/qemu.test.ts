import { expect, it } from 'vitest';
import { PORTS, qemuArguments } from './qemu.mjs';

const machine = {
  accelerator: 'tcg',
  memoryMib: 2048,
  kernel: '/c/kernel',
  initrd: '/c/initrd',
  disks: ['/c/tools', '/c/a,b'],
  sockets: { milestones: '/r/m', stdout: '/r/o', stderr: '/r/e', events: '/r/v', report: '/r/r' },
  console: '/r/console',
  terminal: false,
} as const;

it('never writes to a disk image, has no network and starts no second time', () => {
  const args = qemuArguments(machine);
  const drives = args.filter((arg) => arg.startsWith('if=none'));
  expect(drives).toHaveLength(2);
  for (const drive of drives) expect(drive).toContain('snapshot=on');
  expect(drives[1]).toContain('file=/c/a,,b,');
  expect(args).toEqual(expect.arrayContaining(['-nodefaults', '-no-user-config', '-no-reboot']));
  expect(args.join(' ')).not.toMatch(/-net|-nic|netdev/);
});

it('numbers the ports in the order that the guest names', () => {
  const devices = qemuArguments(machine).filter((arg) => arg.startsWith('virtserialport'));
  expect(devices.map((device) => /nr=(\d+),.*name=lab\.(\w+)/.exec(device)?.slice(1))).toEqual(
    PORTS.map((name, index) => [`${index + 1}`, name]),
  );
});

it('ties a terminal only where there is one', () => {
  expect(qemuArguments(machine).join(' ')).not.toContain('virtconsole');
  expect(qemuArguments({ ...machine, terminal: true }).join(' ')).toContain('virtconsole');
});
