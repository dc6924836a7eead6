// @ts-check
/**
 * What DSec takes from the distribution, and why. `tools/bootstrap.mjs` reads these two tables and
 * nothing else does the installing: a part that needs a program adds a row here.
 */

/**
 * @typedef {object} PackageRow A package that is installed.
 * @property {string} name Its name in Debian and Ubuntu.
 * @property {string} why What it is for, shown while it is installed.
 * @property {'build' | 'test'} need `build`: for `npm start` as well; `test`: only for `npm test`.
 * @property {string} [command] A program of it; looked for in PATH on hosts without dpkg.
 * @property {readonly string[]} [arch] Processors that need it (`process.arch`); absent means all.
 * @property {boolean} [distributionNode] Needed only when Node itself is the distribution's package.
 * @property {Readonly<Record<string, string>>} [versionMin] Least version, per `<id>-<version>` of the host.
 * @property {readonly string[]} [backports] Hosts (`<id>-<version>`) that take it from backports.
 */

/** @type {readonly PackageRow[]} */
export const PACKAGES = [
  { name: 'ca-certificates', need: 'build', why: 'TLS to the package registries' },
  { name: 'gcc', need: 'build', command: 'gcc', why: 'compiles native/' },
  { name: 'libc6-dev', need: 'build', why: 'headers for native/' },
  { name: 'make', need: 'build', command: 'make', why: 'builds native/' },
  { name: 'musl-tools', need: 'build', command: 'musl-gcc', why: 'links the agent statically' },
  {
    name: 'g++',
    need: 'build',
    command: 'g++',
    why: 'compiles SQLite when no prebuilt binary fits',
  },
  { name: 'python3', need: 'build', command: 'python3', why: 'runs node-gyp; the Python SDK' },
  {
    name: 'libnode-dev',
    need: 'build',
    distributionNode: true,
    why: 'headers of the distribution’s own Node, for SQLite',
  },
  { name: 'mmdebstrap', need: 'build', command: 'mmdebstrap', why: 'makes the base layer' },
  {
    name: 'git',
    need: 'build',
    command: 'git',
    why: 'history of the example workspace; lists files',
  },
  {
    name: 'util-linux',
    need: 'build',
    command: 'unshare',
    why: 'private mount namespaces for tests',
  },
  { name: 'python3-venv', need: 'build', why: 'environment of the Python SDK' },
  {
    name: 'iproute2',
    need: 'test',
    command: 'ip',
    why: 'networks in namespaces, for the packet filter',
  },
  {
    name: 'clang',
    need: 'build',
    command: 'clang',
    why: 'compiles the packet filter for the kernel; libFuzzer and sanitizers for native/',
  },
  { name: 'libclang-rt-dev', need: 'test', why: 'runtimes of libFuzzer, ASan and UBSan' },
  {
    name: 'qemu-system-x86',
    need: 'test',
    command: 'qemu-system-x86_64',
    arch: ['x64'],
    versionMin: { 'debian-12': '1:10.0' },
    backports: ['debian-12'],
    why: 'runs the lab guest',
  },
  {
    name: 'e2fsprogs',
    need: 'build',
    why: 'makes the disks of sandboxes and of the lab guest, and scratch disks of tests',
  },
  { name: 'btrfs-progs', need: 'test', command: 'mkfs.btrfs', why: 'scratch disks of tests' },
  { name: 'zstd', need: 'test', command: 'zstd', why: 'unpacks the kernel of the lab guest' },
];

/**
 * @typedef {object} UnpackedRow Packages that are downloaded and unpacked under `.cache/<name>`, never
 *   installed.
 * @property {string} name The folder below `.cache/`: `root/` holds the files, `bin/` a wrapper per program.
 * @property {string} package The package.
 * @property {string} why What it is for.
 * @property {boolean} [libraries] Also unpacks those of its dependencies that the host does not have.
 * @property {readonly string[]} [programs] Paths of programs in it that get a wrapper.
 * @property {readonly string[]} [versionOf] The program among them that prints the version, and its
 *   arguments.
 * @property {readonly string[]} [arch] As above.
 */

/** @type {readonly UnpackedRow[]} */
export const UNPACKED = [
  {
    name: 'oracle',
    package: 'erofs-utils',
    libraries: true,
    programs: ['usr/bin/fsck.erofs', 'usr/bin/mkfs.erofs', 'usr/bin/dump.erofs'],
    versionOf: ['fsck.erofs', '-V'],
    why: 'checks our EROFS images in tests; the product runs without it',
  },
];
