import { check, checkOutcome } from './check.ts';
import type { HostFacts } from './facts.ts';
import { parseFilesystems } from './parse.ts';
import type { HostCheck } from './report.ts';

/** EROFS, overlayfs, shifted ids and FUSE. Pure. */
export function fileSystemChecks(facts: HostFacts): HostCheck[] {
  const { mounts } = facts;
  const group = 'file systems' as const;
  const tried = (id: string, neededFor: string) => ({ id: `fs.${id}`, group, neededFor });
  return [
    erofs(facts),
    checkOutcome(
      tried('erofs-file', 'layers without loop devices'),
      mounts.erofsFile,
      'a kernel with CONFIG_EROFS_FS_BACKED_BY_FILE=y (6.12 or newer)',
    ),
    checkOutcome(
      tried('erofs-directio', 'lazily read layers whose pages are cached once, not twice'),
      mounts.erofsDirectIo,
      'a kernel of version 6.13 or newer',
      'degraded',
    ),
    checkOutcome(
      tried('overlay-descriptor', 'sandboxes from layers that are in no mount table'),
      mounts.overlayDescriptor,
      'a kernel of version 6.15 or newer with CONFIG_OVERLAY_FS=y',
    ),
    checkOutcome(
      tried('overlay-path', 'sandboxes from layers attached by path, redirects not followed'),
      mounts.overlayPath,
      'a kernel with CONFIG_OVERLAY_FS=y, or `modprobe overlay`',
    ),
    checkOutcome(
      tried('idmap', 'shared layers whose owners show as ids of the sandbox'),
      mounts.idmap,
      'a kernel of version 6.12 or newer with CONFIG_USER_NS=y',
    ),
    checkOutcome(
      tried('fuse', 'layers read on demand through the blob daemon'),
      facts.fuse,
      facts.modules.fuse === 'absent' ? 'a kernel with CONFIG_FUSE_FS=y' : '`modprobe fuse`',
    ),
  ];
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
