/**
 * What is at `/.dsec`: a small tmpfs that is read-only once all is in place, with a mount below it for each
 * layer and for the tools of the platform. Nothing of the root or of the writable layer is under it, and
 * nothing can be put over it.
 */
import type { SandboxPlan } from '@dsec/backend';
import { MOUNT_BITS, type MountFields } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import { mountKeyOf } from './mount-key.ts';

const { nosuid, nodev, noexec, readonly } = MOUNT_BITS;
const PLACE = '/.dsec';
const PAGE_BYTES = 4096;

/** `platformPath`: below the state root; absent where the node has no tools of the platform. */
export function toolMounts(
  plan: Pick<SandboxPlan, 'tools' | 'isolationDomain'>,
  platformPath: string | undefined,
): MountFields[] {
  const { tools } = plan;
  if (tools === undefined) return [];
  const target = (name: string) => Buffer.from(`${PLACE}/${name}`);
  const place: MountFields = {
    ...{ kind: 'tmpfs', target: Buffer.from(PLACE), flags: nosuid | nodev | noexec | readonly },
    // A directory for each, and its own.
    ...{ sizeBytes: PAGE_BYTES, inodesMax: tools.layers.length + 3, mode: 0o755 },
  };
  const layers = tools.layers.map((layer): MountFields => {
    const source = Buffer.from(mountKeyOf(plan, layer));
    return { kind: 'layer', target: target(layer.name), source, flags: nosuid | nodev | readonly };
  });
  if (!tools.platform) return [place, ...layers];
  if (platformPath === undefined) {
    throw new DsecError(
      'unsupported',
      'this node has no tools of the platform, which grading needs',
    );
  }
  const source = Buffer.from(platformPath);
  const flags = nosuid | nodev | readonly;
  return [place, ...layers, { kind: 'bind', target: target('platform'), source, flags }];
}
