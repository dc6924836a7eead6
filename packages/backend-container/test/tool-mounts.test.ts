import { MOUNT_BITS } from '@dsec/protocol';
import { describe, expect, it } from 'vitest';
import { toolMounts } from '../src/tool-mounts.ts';
import { layerId } from './support/plans.ts';

const layers = [{ kind: 'tools', name: 'kit', layerId: layerId('b') }] as const;
const of = (platform: boolean, path?: string) =>
  toolMounts({ isolationDomain: 'node', tools: { platform, layers } }, path);
const SAFE = MOUNT_BITS.readonly | MOUNT_BITS.nosuid | MOUNT_BITS.nodev;

describe('what is at /.dsec', () => {
  it('is nothing unless it is asked for', () => {
    expect(toolMounts({ isolationDomain: 'node' }, 'tools/x')).toEqual([]);
  });

  it('is a mount for each layer below one that is sealed, and the tools of the platform', () => {
    const mounts = of(true, 'tools/x').map(({ kind, target, source, flags }) => ({
      ...{ kind, target: String(target), flags: flags & SAFE },
      source: source && String(source),
    }));
    expect(mounts).toEqual([
      { kind: 'tmpfs', target: '/.dsec', source: undefined, flags: SAFE },
      { kind: 'layer', target: '/.dsec/kit', source: layerId('b'), flags: SAFE },
      { kind: 'bind', target: '/.dsec/platform', source: 'tools/x', flags: SAFE },
    ]);
    expect(of(false)).toHaveLength(2);
  });

  it('is refused where the node has no tools of the platform', () => {
    expect(() => of(true)).toThrow(expect.objectContaining({ code: 'unsupported' }));
  });
});
