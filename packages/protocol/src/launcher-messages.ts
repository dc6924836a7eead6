/**
 * What an edge and its launcher say to each other: version 1. The launcher is root and holds no policy;
 * whatever the edge asks, it enforces its own invariants (THREATS B9).
 *
 * **Descriptors: none ever passes between the two.** What the launcher shall open is named by a path
 * relative to the state root (or to the sandbox's root, for mount targets), which it opens itself with
 * openat2 and without symlinks. What others shall reach is made by the launcher under a name derived from
 * the object's: it binds aether's listening socket at such a path, in a directory of mode 0700 that belongs
 * to the edge, and hands it to PID 1 as descriptor 3. The other choice, SCM_RIGHTS, would need foreign code
 * in the edge to receive descriptors, a descriptor held in the launcher for each sandbox (which every fork
 * copies) so that a restarted edge can have it again, and a second way for a restarted launcher, which has
 * none. With names, either side dies and the other notices only a closed connection.
 *
 * **Names.** An object is a sandbox or a service (blob daemon, DNS proxy, QEMU); `name` and `generation`
 * identify it, and all that the launcher makes for it (cgroups, upper, socket, namespaces) is named from
 * them, so that `release` can undo by name what a dead launcher had made. Each request uses a stream of its
 * own and ends with one answer: the named one, `done`, or `error`. A repeated request with the same outcome
 * is answered alike.
 *
 * **Epochs.** `hello` carries the epoch of the edge's state root; the launcher closes connections of older
 * epochs, and remembers the newest across its own restarts. A restarted launcher has another `instance`: the
 * edge then sends `adopt` for every object that its journal says runs.
 */
import { KIB } from '@dsec/std';
import { NONCE_BYTES } from './aether-frames.ts';
import { control, defineFrameProtocol, type FrameOf } from './frame.ts';
import {
  assignments,
  Cgroup,
  LAYERS_MAX,
  layerId,
  objectKey,
  objectName,
  shortText,
  statePath,
} from './launcher-fields.ts';
import { Mount, Spawn } from './launcher-spawn.ts';
import {
  bool,
  bytes,
  i32,
  listOf,
  message,
  optional,
  string,
  u8,
  u32,
  u64,
} from './wire-fields.ts';

const LIST_BYTES_MAX = 60 * KIB;

const nonce = (tag: number) => bytes(tag, { bytesMin: NONCE_BYTES, bytesMax: NONCE_BYTES });

const Hello = message('launcher-hello', {
  nonce: nonce(1),
  versionMax: u8(2, { minimum: 1 }),
  edgeId: shortText(3, 11),
});

const Welcome = message('launcher-welcome', {
  nonce: nonce(1),
  version: u8(2, { minimum: 1 }),
  launcherVersion: shortText(3, 64),
  instance: nonce(4),
});

const Failure = message('launcher-error', {
  /** A code of the error table. */
  code: shortText(1, 40),
  message: string(2, { bytesMax: 1024 }),
  /** Linux errno, positive. */
  errnoValue: optional(i32(3, { minimum: 1, maximum: 4095 })),
  /** The set-up step that failed, such as `mount:/proc`. */
  step: optional(shortText(4)),
});

const Empty = message('launcher-empty', {});

/** Start ticks tell a process from a later one with the same number (field 22 of /proc/PID/stat). */
const Identity = { pid: u32(3, { minimum: 1 }), startTicks: u64(4) };

const Spawned = message('spawned', { ...objectKey, ...Identity });

/**
 * Watch a running object of an earlier launcher. `not-found` when the process is not the one that is meant.
 */
const Adopt = message('adopt', {
  ...objectKey,
  ...Identity,
  cgroups: listOf(5, Cgroup, { itemsMin: 1, itemsMax: 8, bytesMax: 32 * KIB }),
});

/** Kills every process of the object, known or not. `done` comes when its life directory is empty. */
const Kill = message('kill', objectKey);

/**
 * Removes all that bears the name of a dead object, known or not, or of one whose kill is under way once
 * it has ended. `done` means that nothing is left; `state-conflict`, that it runs.
 */
const Release = message('release', objectKey);

const Exit = {
  exitCode: optional(u8(5)),
  signal: optional(u8(6, { minimum: 1, maximum: 64 })),
  oomKilled: bool(7),
};

/** PID 1 of an object has ended. Not acknowledged: `list` shows it until the object is released. */
const Exited = message('exited', { ...objectKey, ...Exit });

const List = message('list', {
  /** The last name of the page before. */
  after: optional(objectName(1)),
});

const Listed = message('listed', {
  objects: listOf(
    1,
    message('listed-object', { ...objectKey, ...Identity, ...Exit, running: bool(8) }),
    { itemsMax: 512, bytesMax: LIST_BYTES_MAX },
  ),
  more: bool(2),
});

/** Mounts a layer once for the node, in the pinned namespace that outlives the launcher. */
const LayerMount = message('layer-mount', {
  layerId: layerId(1),
  /** The metadata file, whose sha256 must be the layer's id. */
  meta: statePath(2),
  /** Blobs in the order of the device table. */
  devices: listOf(3, message('layer-device', { file: statePath(1) }), {
    itemsMax: LAYERS_MAX,
    bytesMax: 40 * KIB,
  }),
  directIo: bool(4),
});

/** `conflict` while a sandbox uses it. */
const LayerUnmount = message('layer-unmount', { layerId: layerId(1) });

const LayerList = message('layer-list', { after: optional(layerId(1)) });

const LayersListed = message('layers-listed', {
  layers: listOf(1, message('mounted-layer', { layerId: layerId(1), users: u32(2) }), {
    itemsMax: 512,
    bytesMax: LIST_BYTES_MAX,
  }),
  more: bool(2),
});

/**
 * The router namespace, pinned at `run/router.net`, has the gateway's address when `done` comes. It is made
 * by the first such request or the first spawn with a link, and goes with the launcher that nobody needs. It
 * has no way to anywhere but the sandboxes, and forwards nothing.
 */
const Router = message('router', { gateway: u32(1) });

/**
 * Replaces all that was mounted for the policy of a running object by what is given: `mask` and `readonly`
 * alone, with the bit `policy`. Nothing inside may run meanwhile. After an error some of both may be there:
 * it is to be repeated.
 */
const Remount = message('remount', {
  ...objectKey,
  mounts: listOf(3, Mount, { itemsMax: 64, bytesMax: 60 * KIB }),
});

/** Changes limits, or freezes, by writing files of one of the object's own cgroups. */
const CgroupWrite = message('cgroup-write', {
  ...objectKey,
  hierarchy: shortText(3, 32),
  settings: assignments(4),
});

export const LAUNCHER_FRAMES = defineFrameProtocol('launcher', {
  hello: control(0x01, 'client', 'connection', Hello),
  welcome: control(0x02, 'server', 'connection', Welcome),
  error: control(0x05, 'server', 'any', Failure),

  spawn: control(0x10, 'client', 'stream', Spawn),
  spawned: control(0x11, 'server', 'stream', Spawned),
  adopt: control(0x12, 'client', 'stream', Adopt),
  kill: control(0x13, 'client', 'stream', Kill),
  release: control(0x14, 'client', 'stream', Release),
  list: control(0x15, 'client', 'stream', List),
  listed: control(0x16, 'server', 'stream', Listed),
  exited: control(0x17, 'server', 'connection', Exited),

  remount: control(0x18, 'client', 'stream', Remount),

  'layer-mount': control(0x20, 'client', 'stream', LayerMount),
  'layer-unmount': control(0x21, 'client', 'stream', LayerUnmount),
  'layer-list': control(0x22, 'client', 'stream', LayerList),
  'layers-listed': control(0x23, 'server', 'stream', LayersListed),

  router: control(0x28, 'client', 'stream', Router),

  'cgroup-write': control(0x30, 'client', 'stream', CgroupWrite),
  done: control(0x4f, 'server', 'stream', Empty),
});

export type LauncherFrame = FrameOf<typeof LAUNCHER_FRAMES>;
