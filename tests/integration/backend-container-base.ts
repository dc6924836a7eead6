/** A small base layer made from programs of this machine, and how the conformance suite is said in it. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import type { ConformanceCommands } from '@dsec/backend/conformance';
import { importLayer, type LayerStore } from '@dsec/layers';
import type { Digest } from '@dsec/std';

const PROGRAMS = [
  ...[
    'cat',
    'env',
    'rm',
    'head',
    'ls',
    'pwd',
    'seq',
    'setsid',
    'sh',
    'sleep',
    'stty',
    'tail',
    'tr',
  ],
  ...['true', 'id', 'nproc', 'touch', 'stat', 'dd'],
];

/** With those that mounts go to, which would else be made in each sandbox. */
const DIRECTORIES = ['bin', 'dev', 'etc', 'proc', 'root', 'sys', 'tmp'];

export interface BaseAdditions {
  /** Names of programs of this machine. */
  readonly programs?: readonly string[];
  /** Puts other files below the root of the layer. */
  readonly fill?: (root: string) => void;
}

/** Programs, what they are linked with, and the directories that programs expect. */
export async function importBase(
  store: LayerStore,
  scratch: string,
  more: BaseAdditions = {},
): Promise<Digest> {
  const root = join(scratch, 'base');
  for (const name of DIRECTORIES) mkdirSync(join(root, name), { recursive: true });
  chmodSync(join(root, 'tmp'), 0o1777);
  writeFileSync(join(root, 'etc/passwd'), 'root:x:0:0:root:/root:/bin/sh\n');
  for (const program of [...PROGRAMS, ...(more.programs ?? [])]) {
    const path = [`/bin/${program}`, `/usr/bin/${program}`].find((each) => existsSync(each)) ?? '';
    copyFileSync(realpathSync(path), join(root, 'bin', program));
    for (const library of librariesOf(path)) copyInto(root, library);
  }
  symlinkSync('.', join(root, 'usr'));
  more.fill?.(root);
  const imported = await importLayer({
    ...{ store, kind: 'base', name: 'small', version: '1.0.0' },
    source: { kind: 'directory', path: root },
  });
  return imported.record.layerId;
}

function librariesOf(program: string): string[] {
  const text = execFileSync('ldd', [program], { encoding: 'utf8' });
  return [...text.matchAll(/(\/\S+) \(0x/g)].map(([, path = '']) => path);
}

function copyInto(root: string, path: string): void {
  const target = join(root, path.replace(/^\/usr\//, '/'));
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(realpathSync(path), target);
}

const shell = (script: string, ...args: string[]) => ['/bin/sh', '-c', script, 'sh', ...args];
const MINUTES = '600';

export const SHELL_COMMANDS: ConformanceCommands = {
  exit: (code) => shell('exit "$1"', `${code}`),
  raise: (signal) => shell('kill -"$1" $$; sleep 60', `${signal}`),
  copyInput: () => ['/bin/cat'],
  count: (last) => ['/bin/seq', '1', `${last}`],
  fill: (bytes) => shell('head -c "$1" /dev/zero | tr "\\000" x', `${bytes}`),
  say: (text, channel) => shell(`printf "%s\\n" "$1"${channel === 'stderr' ? ' >&2' : ''}`, text),
  environment: () => ['/bin/env'],
  directory: () => ['/bin/pwd'],
  sleep: (ms) => ['/bin/sleep', `${ms / 1000}`],
  holdOutputs: (code) => shell(`sleep ${MINUTES} & echo early; exit "$1"`, `${code}`),
  tree: () =>
    shell(
      `trap "" HUP INT QUIT TERM
       setsid sleep ${MINUTES} & (setsid sleep ${MINUTES} & sleep ${MINUTES}) & sleep 0.2
       echo grown; sleep ${MINUTES}`,
    ),
  fillMemory: () => ['/bin/tail', '/dev/zero'],
  terminalSize: () =>
    shell('trap "stty size" WINCH; stty size; while :; do sleep 0.05 & wait $!; done'),
  endShellIn: (ms) => `(sleep ${ms / 1000}; kill -9 $$) &`,
  manyNames: (directory, files) =>
    shell(
      'i=0; while [ $i -lt "$2" ]; do : > "$1/name-$i"; i=$((i + 1)); done',
      directory,
      `${files}`,
    ),
};
