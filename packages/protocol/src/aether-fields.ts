/** Bounds and fields that messages of aether share. */
import { KIB } from '@dsec/std';
import { FRAME_DATA_BYTES_MAX } from './frame.ts';
import { bytes, message, optional, path, pathList, string, u16 } from './wire-fields.ts';

export const NONCE_BYTES = 16;
/** An output stream keeps between the least and the most window of unacknowledged bytes. */
export const WINDOW_BYTES_MIN = 64 * KIB;
export const WINDOW_BYTES_MAX = 1024 * KIB;
/** Requests that one connection may have open at a time. */
export const STREAMS_MAX = 4096;
/** Linux: MAX_ARG_STRLEN without its NUL. Longer scripts go into a file first. */
export const ARGUMENT_BYTES_MAX = 128 * KIB - 1;
/** Linux: PATH_MAX without its NUL. */
export const PATH_BYTES_MAX = 4095;
export const NAME_BYTES_MAX = 255;
/** Of `user:group`, a name or number each, with 32 bytes at most as Linux has them. */
export const USER_BYTES_MAX = 65;
export const LIST_PAGE_BYTES_MAX = FRAME_DATA_BYTES_MAX - KIB;

export const nonce = (tag: number) => bytes(tag, { bytesMin: NONCE_BYTES, bytesMax: NONCE_BYTES });
export const identifier = (tag: number) => string(tag, { bytesMin: 1, bytesMax: 40 });
export const filePath = (tag: number) => path(tag, { bytesMin: 1, bytesMax: PATH_BYTES_MAX });
export const user = (tag: number) =>
  optional(string(tag, { bytesMin: 1, bytesMax: USER_BYTES_MAX }));
/** The bytes of a W3C traceparent: trace id (16), parent id (8), flags (1). */
export const trace = (tag: number) => optional(bytes(tag, { bytesMin: 25, bytesMax: 25 }));
export const mode = (tag: number) => u16(tag, { maximum: 0o7777 });
export const rawToken = (tag: number) => optional(nonce(tag));
export const argv = (tag: number) =>
  optional(
    pathList(tag, {
      itemsMin: 1,
      itemsMax: 4096,
      itemBytesMax: ARGUMENT_BYTES_MAX,
      bytesMax: 160 * KIB,
    }),
  );
/** `NAME=value` each. */
export const environment = (tag: number) =>
  pathList(tag, { itemsMax: 1024, itemBytesMax: 32 * KIB, bytesMax: 64 * KIB });

export const PtySize = message('pty-size', {
  rows: u16(1, { minimum: 1 }),
  columns: u16(2, { minimum: 1 }),
});
