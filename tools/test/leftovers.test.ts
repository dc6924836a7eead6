import { describe, expect, it } from 'vitest';
import { testMounts } from './leftovers.mjs';

const MOUNTINFO = `22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw
23 22 0:21 / /proc rw shared:2 - proc proc rw
80 22 0:60 / /srv/layer ro - erofs /var/store/meta.erofs ro
81 22 0:61 / /srv/root rw - overlay overlay rw,lowerdir=/a:/b
82 22 0:62 / /tmp/dsec-test-x/unit/m rw - tmpfs none rw
83 22 0:63 / /mnt/overlay rw - tmpfs erofs rw
`;

describe('testMounts', () => {
  it('finds EROFS and overlay mounts and everything below the folder of the run', () => {
    const found = testMounts('/tmp/dsec-test-x', MOUNTINFO).map((line) => line.split(' ')[1]);
    expect(found).toEqual(['80', '81', '82']);
  });

  it('reads the namespace of this process', () => {
    expect(testMounts('/').length).toBeGreaterThan(0);
  });
});
