import type { CommandRow } from './command-row.ts';

const LAYER = { syntax: '<ref>', about: 'kind/name:version; the version may be ^1, ~1.2, latest' };

/** Layers of the local store. */
export const LAYER_COMMANDS: readonly CommandRow[] = [
  {
    name: 'layer import',
    summary: 'make a layer from a directory, tar, OCI layout or docker archive',
    arguments: [
      { syntax: '<ref>', about: 'the new name: kind/name:version, such as base/debian:12.0.0' },
      {
        syntax: '<source>',
        about: 'a path (a FIFO is waited for), or - for a tar (plain, gzip, zstd) on stdin',
      },
    ],
    options: [
      {
        ...{ flags: '--type <type>', default: 'auto' },
        about: 'auto, tar, directory, oci-layout or docker-archive',
        words: ['auto', 'tar', 'directory', 'oci-layout', 'docker-archive'],
      },
      {
        flags: '--platform <platform>',
        about: 'of a multi-platform image: os/architecture[/variant]',
      },
      { flags: '--reference <name>', about: 'which image of an archive that holds several' },
      { flags: '--overlay-upper', about: 'the directory is the upper of an overlay' },
      {
        ...{ flags: '--dedup <ref>', repeatable: true },
        about: 'a layer whose data the new one may share; may be repeated',
      },
      {
        ...{ flags: '--limit <name=value>', repeatable: true },
        about: 'another import limit, such as entriesMax=2000000; may be repeated',
      },
    ],
    examples: [
      'layer import workspace/mine:1.0.0 ./my-project',
      'layer import base/python:3.12.0 python.tar --type docker-archive',
    ],
    load: () => import('../commands/layer-import.ts'),
  },
  {
    name: 'layer ls',
    summary: 'list layers, newest version first',
    arguments: [
      { syntax: '[filter]', about: 'a kind (base, workspace, toolkit, diff), or kind/name' },
    ],
    examples: ['layer ls', 'layer ls base/debian'],
    load: () => import('../commands/layer-ls.ts'),
  },
  {
    name: 'layer show',
    summary: 'show one layer',
    arguments: [LAYER],
    examples: ['layer show base/example:latest'],
    load: () => import('../commands/layer-show.ts'),
  },
  {
    name: 'layer rm',
    summary: 'remove the name of a layer; its data stays for whoever else uses it',
    arguments: [{ syntax: '<ref>', about: 'kind/name:version, in full' }],
    examples: ['layer rm workspace/mine:1.0.0'],
    load: () => import('../commands/layer-rm.ts'),
  },
  {
    name: 'layer verify',
    summary: 'read layers again and compare every byte with its digests',
    arguments: [{ syntax: '<ref...>', about: 'kind/name:version' }],
    examples: ['layer verify base/example:latest workspace/spans:latest'],
    load: () => import('../commands/layer-verify.ts'),
  },
];
