import type { CommandRow } from './command-row.ts';
import type { OptionRow } from './table.ts';

const LAYER = { syntax: '<ref>', about: 'kind/name:version; the version may be ^1, ~1.2, latest' };

const URL: OptionRow = {
  ...{ flags: '--url <address>', setting: 'url' },
  about: 'the server whose layers are meant, instead of the state directory',
};
const WHERE =
  'Over the API of the server that --url, DSEC_URL, DSEC_CLIENT or ~/.config/dsec/client.json names; ' +
  'otherwise, and with --state, in the store of the state directory.';

/** Layers: made and verified in the local store, looked at and removed in that of a server too. */
export const LAYER_COMMANDS: readonly CommandRow[] = [
  {
    name: 'layer import',
    summary: 'make a layer from a directory, tar, OCI layout or docker archive, in the local store',
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
    name: 'layer cut-history',
    summary: 'cut what came after a commit out of a workspace directory, for good',
    details:
      'Its repository is made anew from the commit and those before it: no other object, branch, tag, ' +
      'note, stash, reflog, hook or setting stays. Compiled residue and repositories inside go, and ' +
      'every file gets the time of the commit. Do it before the import.',
    arguments: [{ syntax: '<directory>', about: 'the workspace, with .git in it' }],
    options: [
      { flags: '--at <commit>', about: 'the newest commit to keep, by its whole id; else HEAD' },
      { flags: '--removed <file>', about: 'write the ids of what was removed, for layer check' },
    ],
    examples: ['layer cut-history ./my-project --removed removed.txt'],
    load: () => import('../commands/layer-cut-history.ts'),
  },
  {
    name: 'layer check',
    summary: 'prove that nothing of a history that was cut is left in a directory or a layer',
    details:
      'Looks for objects by their ids, loose, packed or as plain files, and for a text in any of these ' +
      'forms; whatever a repository has beside what layer cut-history leaves is told too. Exit code 23 ' +
      'when something is found.',
    arguments: [{ syntax: '<what>', about: 'a directory, or a layer of the local store' }],
    options: [
      { flags: '--removed <file>', about: 'ids of objects, one a line' },
      { flags: '--canary <text>', about: 'a text that only the removed history had' },
    ],
    examples: ['layer check workspace/mine:1.0.0 --removed removed.txt'],
    load: () => import('../commands/layer-check.ts'),
  },
  {
    name: 'layer ls',
    summary: 'list layers, newest version first',
    details: WHERE,
    arguments: [{ syntax: '[filter]', about: 'a kind, such as base or grading, or kind/name' }],
    options: [URL],
    examples: ['layer ls', 'layer ls base/debian'],
    load: () => import('../commands/layer-ls.ts'),
  },
  {
    name: 'layer show',
    summary: 'show one layer',
    details: WHERE,
    arguments: [LAYER],
    options: [URL],
    examples: ['layer show base/example:latest'],
    load: () => import('../commands/layer-show.ts'),
  },
  {
    name: 'layer rm',
    summary: 'remove the name of a layer; its data stays for whoever else uses it',
    details: WHERE,
    arguments: [{ syntax: '<ref>', about: 'kind/name:version, in full' }],
    options: [URL],
    examples: ['layer rm workspace/mine:1.0.0'],
    load: () => import('../commands/layer-rm.ts'),
  },
  {
    name: 'layer verify',
    summary: 'read layers of the local store again and compare every byte with its digests',
    arguments: [{ syntax: '<ref...>', about: 'kind/name:version' }],
    examples: ['layer verify base/example:latest workspace/spans:latest'],
    load: () => import('../commands/layer-verify.ts'),
  },
];
