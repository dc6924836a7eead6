import type { ChunkMap } from './encode.ts';

/**
 * The chunks of trees that were read from images: one element a chunk, the files of a tree one after another.
 */
export interface ChunkList extends ChunkMap {
  readonly length: number;
  /** `deviceId` 0 is a hole. */
  push(deviceId: number, block: number): void;
}

export function createChunkList(): ChunkList {
  let deviceIds = new Uint16Array(1024);
  let blocks = new Uint32Array(1024);
  let length = 0;
  return {
    get length() {
      return length;
    },
    deviceId: (position) => deviceIds[position] as number,
    block: (position) => blocks[position] as number,
    push(deviceId, block) {
      if (length === blocks.length) {
        const largerIds = new Uint16Array(length * 2);
        largerIds.set(deviceIds);
        deviceIds = largerIds;
        const largerBlocks = new Uint32Array(length * 2);
        largerBlocks.set(blocks);
        blocks = largerBlocks;
      }
      deviceIds[length] = deviceId;
      blocks[length] = block;
      length += 1;
    },
  };
}
