import { describe, expect, it } from 'vitest';
import { keepXattr } from '../src/index.ts';

const empty = new Uint8Array();
const hex = (text: string) => Buffer.from(text.replaceAll(' ', ''), 'hex');

describe('names', () => {
  it.each([
    ['file', 'user.a', 'keep'],
    ['directory', 'user.a', 'keep'],
    ['file', 'user.overlayfs', 'keep'],
    ['file', 'user.', 'drop'],
    ['file', 'user.overlay.opaque', 'drop'],
    ['symlink', 'user.a', 'drop'],
    ['char', 'user.a', 'drop'],
    ['directory', 'trusted.overlay.opaque', 'drop'],
    ['file', 'trusted.overlay.redirect', 'drop'],
    ['file', 'trusted.a', 'drop'],
    ['file', 'security.selinux', 'drop'],
    ['file', 'security.apparmor', 'drop'],
    ['file', 'security.ima', 'drop'],
    ['file', 'system.nfs4_acl', 'drop'],
    ['file', 'USER.a', 'drop'],
    ['file', '', 'drop'],
  ] as const)('%s %s: %s', (kind, name, verdict) => {
    expect(keepXattr(kind, name, empty)).toBe(verdict);
  });
});

describe('security.capability', () => {
  const sets = '00040000 00000000 00000000 00000000';
  it.each([
    ['revision 2', `01000002 ${sets}`, 'keep'],
    ['revision 2, not effective', `00000002 ${sets}`, 'keep'],
    ['revision 1', '01000001 00040000 00000000', 'keep'],
    ['revision 3 of root', `01000003 ${sets} 00000000`, 'keep'],
    ['revision 3 of id 65535', `01000003 ${sets} ffff0000`, 'keep'],
    ['revision 3 of id 65536', `01000003 ${sets} 00000100`, 'bad-id'],
    ['revision 2, too long', `01000002 ${sets} 00`, 'drop'],
    ['revision 4', `01000004 ${sets} 00000000`, 'drop'],
    ['unknown flag', `02000002 ${sets}`, 'drop'],
    ['nothing', '', 'drop'],
  ] as const)('%s: %s → %s', (_, value, verdict) => {
    expect(keepXattr('file', 'security.capability', hex(value))).toBe(verdict);
  });

  it('belongs on files', () => {
    expect(keepXattr('directory', 'security.capability', hex(`01000002 ${sets}`))).toBe('drop');
  });
});

describe('ACLs', () => {
  const version = '02000000';
  const user = '01000700 ffffffff';
  const named = '02000500 e8030000';
  const group = '04000500 ffffffff';
  const namedGroup = '08000500 e8030000';
  const mask = '10000700 ffffffff';
  const other = '20000500 ffffffff';
  it.each([
    ['minimal', [version, user, group, other], 'keep'],
    ['full', [version, user, named, named, group, namedGroup, mask, other], 'keep'],
    ['id 65536', [version, user, '02000500 00000100', group, mask, other], 'bad-id'],
    ['id where none belongs', [version, user, '04000500 00000000', other], 'drop'],
    ['no mask', [version, user, named, group, other], 'drop'],
    ['wrong order', [version, group, user, other], 'drop'],
    ['two owners', [version, user, user, group, other], 'drop'],
    ['two masks', [version, user, group, mask, mask, other], 'drop'],
    ['no other', [version, user, group], 'drop'],
    ['bad permissions', [version, '01000800 ffffffff', group, other], 'drop'],
    ['bad tag', [version, user, group, other, '40000500 ffffffff'], 'drop'],
    ['bad version', ['01000000', user, group, other], 'drop'],
    ['no entries', [version], 'drop'],
    ['cut', [version, user, group, '20000500'], 'drop'],
    ['nothing', [], 'drop'],
  ] as const)('%s', (_, parts, verdict) => {
    const value = hex(parts.join(''));
    expect(keepXattr('file', 'system.posix_acl_access', value)).toBe(verdict);
    expect(keepXattr('directory', 'system.posix_acl_default', value)).toBe(verdict);
    expect(keepXattr('file', 'system.posix_acl_default', value)).toBe('drop');
    expect(keepXattr('symlink', 'system.posix_acl_access', value)).toBe('drop');
  });
});
