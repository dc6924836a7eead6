// @ts-check
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * @typedef {object} ModuleInfo What a kernel module says of itself.
 * @property {string[]} needs Names of modules that must be loaded before it.
 * @property {string[]} aliases By which the kernel asks for it.
 */

/**
 * @typedef {object} LoadedModule
 * @property {string} name
 * @property {Buffer} bytes Uncompressed.
 * @property {ModuleInfo} info
 */

/** Loaded by the initial file system, for the root disk. Those built into the kernel are passed over. */
export const BOOT_MODULES = ['virtio_blk', 'ext4', 'virtio_rng'];

/** In the guest's module tree, loaded on demand. */
export const GUEST_MODULES = [
  ...['erofs', 'overlay', 'loop', 'fuse', 'btrfs', 'zram', 'quota_v2'],
  ...['crc32c_generic', 'xxhash_generic', 'sha256_generic', 'blake2b_generic'],
  ...['lz4', 'lz4_compress', 'zstd', 'lzo', 'lzo_rle'],
  ...['veth', 'virtio_net', 'tun', 'dummy', 'bridge', 'vsock', 'vmw_vsock_virtio_transport'],
  ...['sch_ingress', 'cls_bpf', 'act_bpf', 'nf_tables', 'nft_ct', 'nft_nat', 'nft_masq'],
  ...['virtio_pmem', 'nd_pmem', 'virtio_balloon', 'qemu_fw_cfg'],
];

/** Without these the lab is of no use. */
export const NEEDED_MODULES = ['virtio_blk', 'ext4', 'erofs', 'overlay', 'loop', 'fuse'];

/** @param {string} name */
export const moduleName = (name) => name.replaceAll('-', '_');

/**
 * The modules below a folder.
 *
 * @param {string} folder `/lib/modules/<release>` of some root.
 * @returns {Map<string, string>} Name → path of the file, compressed or not.
 */
export function findModules(folder) {
  const found = new Map();
  for (const path of readdirSync(folder, { recursive: true, encoding: 'utf8' })) {
    const match = /([^/]+)\.ko(?:\.(?:xz|zst|gz))?$/.exec(path);
    if (match?.[1] !== undefined) found.set(moduleName(match[1]), join(folder, path));
  }
  return found;
}

/**
 * @param {string} folder As above.
 * @returns {Set<string>} Names of modules that this kernel has built in.
 */
export function builtinModules(folder) {
  const lines = readFileSync(join(folder, 'modules.builtin'), 'utf8').split('\n');
  return new Set(lines.map((line) => moduleName(/([^/]+)\.ko$/.exec(line)?.[1] ?? '')));
}

/**
 * Modules with all that they need, each after its needs: the order in which they can be loaded.
 *
 * @param {readonly string[]} wanted Names; those that `load` does not know are passed over.
 * @param {(name: string) => LoadedModule | undefined} load Undefined for one that is built in or absent.
 * @returns {LoadedModule[]}
 */
export function inLoadOrder(wanted, load) {
  /** @type {Map<string, LoadedModule | undefined>} */
  const seen = new Map();
  /** @type {LoadedModule[]} */
  const order = [];
  const visit = (/** @type {string} */ name) => {
    if (seen.has(name)) return;
    const loaded = load(name);
    seen.set(name, loaded);
    if (loaded === undefined) return;
    for (const need of loaded.info.needs) visit(need);
    order.push(loaded);
  };
  for (const name of wanted) visit(moduleName(name));
  return order;
}

/**
 * The index files that modprobe reads.
 *
 * @param {readonly LoadedModule[]} order As `inLoadOrder` gives it.
 * @param {(name: string) => string} pathOf Path of a module's file below its folder.
 * @returns {Record<'modules.dep' | 'modules.alias', string>}
 */
export function moduleIndexes(order, pathOf) {
  const byName = new Map(order.map((entry) => [entry.name, entry]));
  const load = (/** @type {string} */ name) => byName.get(name);
  const dependencies = order.map(({ name }) => {
    const needs = inLoadOrder([name], load).reverse().slice(1);
    return `${pathOf(name)}:${needs.map((need) => ` ${pathOf(need.name)}`).join('')}\n`;
  });
  const aliases = order.flatMap(({ name, info }) =>
    info.aliases.map((alias) => `alias ${alias} ${name}\n`),
  );
  return { 'modules.dep': dependencies.join(''), 'modules.alias': aliases.join('') };
}

/**
 * Reads the `.modinfo` section of a module (ELF, 64 bits, little endian).
 *
 * @param {Buffer} elf
 * @returns {ModuleInfo}
 */
export function parseModuleInfo(elf) {
  const section = sectionOf(elf, '.modinfo');
  const entries = section.toString('latin1').split('\0');
  const valuesOf = (/** @type {string} */ key) =>
    entries.flatMap((entry) => (entry.startsWith(`${key}=`) ? [entry.slice(key.length + 1)] : []));
  const needs = valuesOf('depends').flatMap((value) => value.split(',').filter(Boolean));
  return { needs: needs.map(moduleName), aliases: valuesOf('alias') };
}

/**
 * @param {Buffer} elf
 * @param {string} wanted
 * @returns {Buffer} Empty when there is no such section.
 */
function sectionOf(elf, wanted) {
  if (elf.readUInt32BE(0) !== 0x7f454c46) throw new TypeError('not an ELF file');
  const tableOffset = Number(elf.readBigUInt64LE(0x28));
  const [size, count, nameIndex] = [0x3a, 0x3c, 0x3e].map((offset) => elf.readUInt16LE(offset));
  const header = (/** @type {number} */ index) => {
    const at = tableOffset + index * (size ?? 0);
    const offset = Number(elf.readBigUInt64LE(at + 0x18));
    const length = Number(elf.readBigUInt64LE(at + 0x20));
    return { name: elf.readUInt32LE(at), bytes: elf.subarray(offset, offset + length) };
  };
  const names = header(nameIndex ?? 0).bytes;
  for (let index = 0; index < (count ?? 0); index++) {
    const { name, bytes } = header(index);
    if (names.toString('latin1', name, names.indexOf(0, name)) === wanted) return bytes;
  }
  return Buffer.alloc(0);
}
