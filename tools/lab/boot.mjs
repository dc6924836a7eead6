// @ts-check
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { hasCommand } from '../bootstrap/host.mjs';
import { cached, keyOf } from './cache.mjs';
import { cpioArchive } from './cpio.mjs';
import { LabUnavailable } from './failure.mjs';
import {
  BOOT_MODULES,
  builtinModules,
  findModules,
  inLoadOrder,
  NEEDED_MODULES,
  parseModuleInfo,
} from './modules.mjs';

const UNPACKED_BYTES_MAX = 256 << 20;
const ZSTD_MAGIC = 0x28b52ffd;
/** Programs of busybox that `guest/init.sh` calls. */
const INIT_PROGRAMS = [
  'sh',
  'mkdir',
  'ln',
  'usleep',
  'mount',
  'insmod',
  'cp',
  'switch_root',
  'poweroff',
];

/** @typedef {import('./parts.mjs').Parts} Parts */
/** @typedef {import('./modules.mjs').LoadedModule} LoadedModule */

/**
 * The kernel and initial file system that QEMU is given.
 *
 * @param {string} folder
 * @param {Parts} parts
 * @param {string} initScript Text of `guest/init.sh`.
 * @returns {Promise<import('./cache.mjs').Made>} A folder with `kernel` and `initrd`.
 */
export function makeBoot(folder, parts, initScript) {
  const key = keyOf([...parts.archives, initScript, ...BOOT_MODULES]);
  return cached(folder, 'boot', key, async (path) => {
    mkdirSync(path);
    const packed = readFileSync(join(parts.root, 'boot', `vmlinuz-${parts.release}`));
    writeFileSync(join(path, 'kernel'), unpackedKernel(packed));
    const modules = loadModules(parts, BOOT_MODULES);
    const busybox = readFileSync(partPath(parts, 'bin/busybox'));
    writeFileSync(join(path, 'initrd'), initialFiles(busybox, initScript, modules));
  });
}

/**
 * A file of the packages, wherever their distribution keeps it.
 *
 * @param {Parts} parts
 * @param {string} path Below `/` or `/usr`.
 */
export function partPath(parts, path) {
  const places = [join(parts.root, 'usr', path), join(parts.root, path)];
  const found = places.find((place) => existsSync(place));
  if (found === undefined) throw new LabUnavailable(`the lab's packages hold no ${path}`);
  return found;
}

/**
 * The modules of `names` that are not built in, with all that they need, in load order.
 *
 * @param {Parts} parts
 * @param {readonly string[]} names
 * @returns {LoadedModule[]}
 */
export function loadModules(parts, names) {
  const folder = partPath(parts, join('lib/modules', parts.release));
  const files = findModules(folder);
  const builtin = builtinModules(folder);
  const lacking = NEEDED_MODULES.filter((name) => !files.has(name) && !builtin.has(name));
  if (lacking.length > 0) {
    throw new LabUnavailable(`the lab's kernel ${parts.release} has no ${lacking.join(', ')}`);
  }
  return inLoadOrder(names, (name) => {
    const path = files.get(name);
    if (path === undefined) return undefined;
    const bytes = unpackedModule(partPath(parts, 'bin/busybox'), path);
    return { name, bytes, info: parseModuleInfo(bytes) };
  });
}

/**
 * The ELF kernel inside a compressed one: QEMU starts it directly, and the guest need not unpack it, which
 * takes it a second without hardware virtualisation. The compressed kernel itself where it is packed in
 * another way.
 *
 * @param {Buffer} packed A "bzImage"; its header is described in the kernel's
 *   Documentation/arch/x86/boot.rst.
 * @returns {Buffer}
 */
export function unpackedKernel(packed) {
  const setupSectors = packed.readUInt8(0x1f1) || 4;
  const start = (setupSectors + 1) * 512 + packed.readUInt32LE(0x248);
  const length = packed.readUInt32LE(0x24c);
  if (packed.readUInt32BE(start) !== ZSTD_MAGIC || !hasCommand('zstd')) return packed;
  // The payload ends with the unpacked length, 4 bytes.
  return unpackWith('zstd', ['-dc'], packed.subarray(start, start + length - 4));
}

/**
 * @param {Buffer} busybox
 * @param {string} initScript
 * @param {readonly LoadedModule[]} modules
 */
function initialFiles(busybox, initScript, modules) {
  const directories = ['bin', 'dev', 'disk', 'modules', 'proc', 'sys'];
  return cpioArchive([
    ...directories.map((path) => ({ path, type: /** @type {const} */ ('directory') })),
    { path: 'bin/busybox', type: 'file', mode: 0o755, data: busybox },
    ...INIT_PROGRAMS.map((name) => ({
      path: `bin/${name}`,
      type: /** @type {const} */ ('symlink'),
      data: 'busybox',
    })),
    { path: 'init', type: 'file', mode: 0o755, data: initScript },
    // Loaded in the order of their names.
    ...modules.map(({ name, bytes }, index) => ({
      path: `modules/${String(index).padStart(3, '0')}-${name}.ko`,
      type: /** @type {const} */ ('file'),
      data: bytes,
    })),
  ]);
}

/**
 * @param {string} busybox
 * @param {string} path
 */
function unpackedModule(busybox, path) {
  const bytes = readFileSync(path);
  if (path.endsWith('.xz')) return unpackWith(busybox, ['xz', '-dc'], bytes);
  if (path.endsWith('.zst')) return unpackWith('zstd', ['-dc'], bytes);
  return path.endsWith('.gz') ? gunzipSync(bytes) : bytes;
}

/**
 * @param {string} command
 * @param {string[]} args
 * @param {Buffer} input
 */
function unpackWith(command, args, input) {
  return execFileSync(command, args, { input, maxBuffer: UNPACKED_BYTES_MAX });
}
