/** Settings of a terminal that Node has no call for: termios(3), as the kernel's ioctls have it. */
import { syscall } from './syscall.ts';

const TCGETS = 0x5401;
const TCSETS = 0x5402;
/** More than the structure has on any architecture; its first four fields are flags of 32 bits. */
const TERMIOS_BYTES = 64;
const OUTPUT_FLAGS_AT = 4;
const OPOST = 1;

/**
 * Has a terminal show bytes as they come, until the function that comes back is called: Node's raw mode
 * leaves a carriage return before each newline, which moves the cursor of full-screen programs. Throws
 * `invalid-argument` or `unsupported` for what is no terminal.
 */
export function stopOutputProcessing(fd: number): () => void {
  const before = readOutputFlags(fd);
  writeOutputFlags(fd, before & ~OPOST);
  return () => writeOutputFlags(fd, before);
}

function readOutputFlags(fd: number): number {
  return readSettings(fd).readUInt32LE(OUTPUT_FLAGS_AT);
}

function writeOutputFlags(fd: number, flags: number): void {
  const settings = readSettings(fd);
  settings.writeUInt32LE(flags >>> 0, OUTPUT_FLAGS_AT);
  syscall('ioctl', [fd, TCSETS, settings], 'terminal');
}

function readSettings(fd: number): Buffer {
  const settings = Buffer.alloc(TERMIOS_BYTES);
  syscall('ioctl', [fd, TCGETS, settings], 'terminal');
  return settings;
}
