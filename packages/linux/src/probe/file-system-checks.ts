import { check, checkOutcome } from './check.ts';
import { fails, type HostFacts, type Outcome } from './facts.ts';
import { parseFilesystems } from './parse.ts';
import type { HostCheck } from './report.ts';

/** The kernel mounts no EROFS image from a file on these (ENOTBLK), whatever its version. */
const NO_PLACE_FOR_LAYERS: ReadonlySet<string> = new Set(['tmpfs', 'ramfs', 'overlay']);
const MOVE_STATE = 'put the state directory (--state) on a local ext4, xfs or btrfs';

/** EROFS, overlayfs, shifted ids and FUSE. Pure. */
export function fileSystemChecks(facts: HostFacts): HostCheck[] {
  const { mounts } = facts;
  const group = 'file systems' as const;
  const remedy = (usual: string) => (isPlaceUnfit(facts) ? MOVE_STATE : usual);
  const tried = (id: string, neededFor: string) => ({ id: `fs.${id}`, group, neededFor });
  return [
    erofs(facts),
    checkOutcome(
      tried('erofs-file', 'layers without loop devices'),
      placed(facts, mounts.erofsFile),
      remedy('a kernel with CONFIG_EROFS_FS_BACKED_BY_FILE=y (6.12 or newer)'),
    ),
    checkOutcome(
      tried('erofs-directio', 'lazily read layers whose pages are cached once, not twice'),
      mounts.erofsDirectIo,
      remedy('a kernel of version 6.13 or newer'),
      'degraded',
    ),
    checkOutcome(
      tried('overlay-descriptor', 'sandboxes from layers that are in no mount table'),
      mounts.overlayDescriptor,
      remedy('a kernel of version 6.15 or newer with CONFIG_OVERLAY_FS=y'),
    ),
    checkOutcome(
      tried('overlay-path', 'sandboxes from layers attached by path, redirects not followed'),
      mounts.overlayPath,
      remedy('a kernel with CONFIG_OVERLAY_FS=y, or `modprobe overlay`'),
    ),
    checkOutcome(
      tried('idmap', 'shared layers whose owners show as ids of the sandbox'),
      mounts.idmap,
      remedy('a kernel of version 6.12 or newer with CONFIG_USER_NS=y'),
    ),
    checkOutcome(
      tried('fuse', 'layers read on demand through the blob daemon'),
      facts.fuse,
      facts.modules.fuse === 'absent' ? 'a kernel with CONFIG_FUSE_FS=y' : '`modprobe fuse`',
    ),
  ];
}

function isPlaceUnfit({ disk }: HostFacts): boolean {
  return disk !== undefined && NO_PLACE_FOR_LAYERS.has(disk.fileSystem);
}

/** A failure that comes from where the state directory lies says so. */
function placed(facts: HostFacts, outcome: Outcome): Outcome {
  if (outcome.state !== 'fails' || !isPlaceUnfit(facts) || facts.disk === undefined) return outcome;
  const { path, fileSystem } = facts.disk;
  return fails(`${path} lies on ${fileSystem}, which cannot hold layers: ${outcome.why}`);
}

function erofs(facts: HostFacts): HostCheck {
  const head = {
    id: 'fs.erofs',
    group: 'file systems',
    neededFor: 'the format of every layer',
  } as const;
  const running = parseFilesystems(facts.files['/proc/filesystems'] ?? '').includes('erofs');
  if (running) return check(head, 'ok', 'in the running kernel', '');
  switch (facts.modules.erofs) {
    case 'builtin':
    case 'module':
      return check(head, 'ok', 'a module, loaded when first used', '');
    case 'absent':
      return check(head, 'missing', 'not in this kernel', 'a kernel with CONFIG_EROFS_FS=m');
    case 'unknown':
      return check(head, 'unknown', 'not loaded, and no list of modules', '`modprobe erofs`');
  }
}
