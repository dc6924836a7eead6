import { readFileSync, readlinkSync, realpathSync } from 'node:fs';
import { DsecError } from '@dsec/std';

/** The first cgroup namespace always has this number (`PROC_CGROUP_INIT_INO`). */
const FIRST_NAMESPACE = 'cgroup:[4026531835]';

/**
 * How deep a directory of cgroup v2 lies below the root of the machine, which is level 0: what programs
 * ask for the ancestor of a process by. The launcher puts a sandbox into `<v2 root>/dsec-<edge>/<name>-<n>`,
 * and whatever cgroups it makes inside lie deeper. `unsupported`: this process sees only a part of the
 * hierarchy, so that nobody knows how deep that is.
 */
export function cgroupLevelOf(
  directory: string,
  mountInfo = readFileSync('/proc/self/mountinfo', 'utf8'),
  namespace = readlinkSync('/proc/self/ns/cgroup'),
): number {
  const path = realpathSync(directory);
  const mount = mountsOfCgroup2(mountInfo)
    .filter(({ point }) => path === point || path.startsWith(point === '/' ? '/' : `${point}/`))
    .sort((a, b) => b.point.length - a.point.length)[0];
  if (mount === undefined) {
    throw new DsecError('invalid-argument', `${directory} is not in a cgroup v2 file system`);
  }
  if (namespace !== FIRST_NAMESPACE) {
    throw new DsecError(
      'unsupported',
      `the packet filter needs the cgroup namespace of the host; this is ${namespace}`,
    );
  }
  return partsOf(mount.root) + partsOf(path.slice(mount.point === '/' ? 0 : mount.point.length));
}

function mountsOfCgroup2(mountInfo: string): { root: string; point: string }[] {
  return mountInfo.split('\n').flatMap((line) => {
    const [head = '', tail = ''] = line.split(' - ');
    const [, , , root = '', point = ''] = head.split(' ');
    return tail.startsWith('cgroup2 ') ? [{ root: plainPath(root), point: plainPath(point) }] : [];
  });
}

/** mountinfo writes blanks and the like as octal numbers. */
const plainPath = (text: string) =>
  text.replaceAll(/\\([0-7]{3})/g, (_, digits) => String.fromCharCode(Number.parseInt(digits, 8)));

const partsOf = (path: string) => path.split('/').filter((part) => part !== '').length;
