import { damaged } from './image.ts';

const UNIT_BYTES = 4;

/**
 * Remembers which parts of an image have a meaning. Everything that EROFS places is aligned to four bytes.
 */
export interface Claims {
  /** Throws `layer-invalid` when a part is outside the image or was claimed before. */
  claim(start: number, end: number): void;
  /** Throws `layer-invalid` unless what nobody claimed is zero. */
  assertRestIsZero(): void;
}

/**
 * One bit for four bytes of the image. As every part is claimed before it is read, a hostile image cannot
 * make its reader do more work than its length.
 */
export function createClaims(image: Buffer): Claims {
  const units = Math.ceil(image.length / UNIT_BYTES);
  const taken = new Uint8Array(Math.ceil(units / 8));

  const take = (unit: number) => {
    const byte = unit >>> 3;
    const bit = 1 << (unit & 7);
    const before = taken[byte] as number;
    if ((before & bit) !== 0) throw damaged('uses the same bytes twice');
    taken[byte] = before | bit;
  };

  return {
    claim(start, end) {
      if (!(start >= 0 && start <= end && end <= image.length)) {
        throw damaged(`refers to bytes ${start} to ${end}, which it does not have`);
      }
      const last = Math.ceil(end / UNIT_BYTES);
      for (let unit = Math.floor(start / UNIT_BYTES); unit < last; ) {
        if ((unit & 7) === 0 && unit + 8 <= last && taken[unit >>> 3] === 0) {
          taken[unit >>> 3] = 0xff;
          unit += 8;
        } else {
          take(unit);
          unit += 1;
        }
      }
      assertZero(image, end, last * UNIT_BYTES);
    },
    assertRestIsZero() {
      for (let byte = 0; byte < taken.length; byte += 1) {
        const bits = taken[byte] as number;
        if (bits === 0xff) continue;
        for (let unit = byte * 8; unit < byte * 8 + 8; unit += 1) {
          if ((bits & (1 << (unit & 7))) !== 0) continue;
          assertZero(image, unit * UNIT_BYTES, (unit + 1) * UNIT_BYTES);
        }
      }
    },
  };
}

export function assertZero(bytes: Buffer, start: number, end: number): void {
  const stop = Math.min(end, bytes.length);
  for (let index = start; index < stop; index += 1) {
    if (bytes[index] !== 0) throw damaged(`has hidden content at byte ${index}`);
  }
}
