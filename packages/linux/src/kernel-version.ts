/** Versions of the kernel, and what depends on them. Pure. */

export interface KernelVersion {
  readonly major: number;
  readonly minor: number;
  readonly patch: number;
}

/** `6.12.43+deb13-cloud-amd64` → 6, 12, 43. */
export function parseKernelVersion(release: string): KernelVersion | undefined {
  const match = /^(\d+)\.(\d+)(?:\.(\d+))?/.exec(release.trim());
  if (match === null) return undefined;
  return { major: Number(match[1]), minor: Number(match[2]), patch: Number(match[3] ?? 0) };
}

/** Whether a version is this one or newer. */
export function isAtLeast(version: KernelVersion, major: number, minor: number): boolean {
  return version.major > major || (version.major === major && version.minor >= minor);
}

/**
 * How an overlay is given layers that are mounts on this kernel. `descriptor`: as detached mounts, in no
 * mount table (6.15 and newer; 6.13 and 6.14 take descriptors, but only of what is attached). `path`:
 * attached somewhere. An unreadable release counts as old.
 */
export function overlayFormOf(kernelRelease: string): 'descriptor' | 'path' {
  const version = parseKernelVersion(kernelRelease);
  return version !== undefined && isAtLeast(version, 6, 15) ? 'descriptor' : 'path';
}
