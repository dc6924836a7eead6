import type { MountForm } from '@dsec/layers';

/** How overlays get their layers on a kernel, from its release string: by descriptor since Linux 6.13. */
export function mountFormOf(kernelRelease: string): MountForm {
  const [major = 0, minor = 0] = kernelRelease.split(/[.-]/).map(Number);
  return major > 6 || (major === 6 && minor >= 13) ? 'descriptor' : 'path';
}
