import Type, { type Static } from 'typebox';
import {
  byteCount,
  count,
  cursor,
  digest,
  instantMs,
  integer,
  listOfMax,
  name,
  record,
  words,
} from '../names.ts';
import { ErrorBody } from './error-body.ts';

export const LayerKindWord = words('LayerKind', [
  ...(['base', 'workspace', 'toolkit', 'diff', 'tools', 'grading'] as const),
]);

const NAME = '[a-z0-9](\\.?[a-z0-9_-])*\\.?';
const NUMBER = '(0|[1-9][0-9]{0,8})';
const VERSION = `${NUMBER}\\.${NUMBER}\\.${NUMBER}(-[0-9a-z.-]+)?`;
const RANGE = `[\\^~]${NUMBER}(\\.${NUMBER}){0,2}`;
const KIND = '(base|workspace|toolkit|diff|tools|grading)';

export const VersionText = Type.String({
  pattern: `^${VERSION}$`,
  maxLength: 128,
  description:
    'A full semantic version in lower case, without build metadata, as 1.0.0 or 1.0.0-rc.1.',
});
/** The fixed name of a layer. */
export const LayerRefText = Type.String({
  pattern: `^${KIND}/${NAME}:${VERSION}$`,
  maxLength: 300,
  description: 'kind/name:version, as base/python:3.11.0; the kind is one of LayerKind.',
});
/** A name that may float; what it means is recorded when it is used. */
export const LayerSelectorText = Type.String({
  pattern: `^${KIND}/${NAME}:(${VERSION}|${RANGE}|latest)$`,
  maxLength: 300,
  description:
    'kind/name:version, as base/python:3.11.0; the kind is one of LayerKind, and the ' +
    'version may be ^1, ~1.2 or latest as well.',
});

export const LayerDevice = record('LayerDevice', {
  blobId: digest,
  bytes: byteCount(),
});

export const Layer = record('Layer', {
  layerId: digest,
  treeDigest: digest,
  metaBytes: byteCount(),
  entries: count(),
  contentBytes: byteCount('Of all files, as their sizes say.'),
  storedBytes: byteCount('Of the data that this layer added to the store.'),
  sharedBytes: byteCount('Of the data that it found in other layers.'),
  devices: listOfMax(LayerDevice, 256),
});
export type Layer = Static<typeof Layer>;

export const LayerPage = record('LayerPage', {
  layers: listOfMax(Layer, 1000),
  cursor: Type.Optional(cursor),
});

export const LayerRef = record('LayerRef', {
  ref: LayerRefText,
  layerId: digest,
  treeDigest: digest,
  createdAtMs: instantMs(),
});
export type LayerRef = Static<typeof LayerRef>;

export const LayerRefCreate = record('LayerRefCreate', { layerId: digest });

export const LayerRefListQuery = record('LayerRefListQuery', {
  limit: Type.Optional(integer(1, 1000)),
  cursor: Type.Optional(cursor),
  kind: Type.Optional(LayerKindWord),
  name: Type.Optional(name),
});

export const LayerRefPage = record('LayerRefPage', {
  refs: listOfMax(LayerRef, 1000),
  cursor: Type.Optional(cursor),
});

export const ResolveQuery = record('ResolveQuery', { selector: LayerSelectorText });

export const LayerImportQuery = record(
  'LayerImportQuery',
  {
    format: words('ImportFormat', ['tar', 'oci-archive', 'docker-archive']),
    ref: Type.Optional(LayerRefText),
  },
  'How the body, one archive, is to be read.',
);

export const LayerImportEvent = record(
  'LayerImportEvent',
  {
    entries: count(),
    contentBytes: byteCount(),
    layer: Type.Optional(Layer),
    error: Type.Optional(ErrorBody),
  },
  'A line of the stream that an import answers with. The last one has `layer` or `error`.',
);
export type LayerImportEvent = Static<typeof LayerImportEvent>;

export const LayerVerifyReport = record('LayerVerifyReport', {
  layerId: digest,
  ok: Type.Boolean(),
  problems: listOfMax(Type.String({ maxLength: 512 }), 100),
  checkedBytes: byteCount(),
});

export const Environment = record(
  'Environment',
  {
    name,
    layers: listOfMax(LayerSelectorText, 64, 1),
    revision: count(),
    updatedAtMs: instantMs(),
  },
  'An ordered list of layers under a name: base, workspace, toolkits, diffs.',
);
export type Environment = Static<typeof Environment>;

export const EnvironmentPut = record('EnvironmentPut', {
  layers: listOfMax(LayerSelectorText, 64, 1),
  revision: Type.Optional(count('Replace only this revision; 0: only if there is none.')),
});

export const EnvironmentPage = record('EnvironmentPage', {
  environments: listOfMax(Environment, 1000),
  cursor: Type.Optional(cursor),
});
