import { DsecError } from '@dsec/std';

/** What an image is built for, in the words of the OCI specification. */
export interface Platform {
  readonly os: string;
  readonly architecture: string;
  /** Absent: any. */
  readonly variant?: string | null | undefined;
}

/** Node's names of architectures that the specification (which takes Go's) names otherwise. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

export function hostPlatform(): Platform {
  return { os: 'linux', architecture: ARCHITECTURES[process.arch] ?? process.arch };
}

/** `linux/arm64` or `linux/arm64/v8`; `invalid-argument` for anything else. */
export function parsePlatform(text: string): Platform {
  const match = /^([a-z0-9]{1,32})\/([a-z0-9_]{1,32})(?:\/([a-z0-9.]{1,32}))?$/.exec(text);
  const [, os, architecture, variant] = match ?? [];
  if (os === undefined || architecture === undefined) {
    throw new DsecError('invalid-argument', 'a platform has the form os/architecture[/variant]');
  }
  return variant === undefined ? { os, architecture } : { os, architecture, variant };
}

export function formatPlatform({ os, architecture, variant }: Platform): string {
  return variant ? `${os}/${architecture}/${variant}` : `${os}/${architecture}`;
}

/** Whether an image for `offered` is what was asked for. A variant counts only when one was asked for. */
export function matchesPlatform(offered: Platform, wanted: Platform): boolean {
  return (
    offered.os === wanted.os &&
    offered.architecture === wanted.architecture &&
    (!wanted.variant || offered.variant === wanted.variant)
  );
}
