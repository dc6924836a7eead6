import { digest, name } from '../names.ts';
import {
  Environment,
  EnvironmentPage,
  EnvironmentPut,
  Layer,
  LayerImportEvent,
  LayerImportQuery,
  LayerKindWord,
  LayerPage,
  LayerRef,
  LayerRefCreate,
  LayerRefListQuery,
  LayerRefPage,
  LayerVerifyReport,
  ResolveQuery,
  VersionText,
} from './layer.ts';
import { byteBody, empty, jsonBody, lines, noBody, none, ok, params, route } from './route.ts';
import { pageQuery } from './sandbox.ts';

const page = params(pageQuery);
const layer = { params: params({ layerId: digest }), query: none } as const;
const ref = {
  params: params({ kind: LayerKindWord, name, version: VersionText }),
  query: none,
} as const;
const environment = { params: params({ name }), query: none } as const;
const read = {
  home: 'apiserver',
  operationClass: 'layers:read',
  effect: 'read',
  body: noBody,
} as const;
const write = {
  home: 'apiserver',
  operationClass: 'layers:write',
  effect: 'idempotent',
} as const;

export const LAYER_ROUTES = {
  importLayer: route({
    ...{ method: 'POST', path: '/v1/layer-imports', ...write },
    summary: 'Make a layer of an archive. The same content is the same layer.',
    params: none,
    query: LayerImportQuery,
    body: byteBody,
    reply: lines(LayerImportEvent),
  }),
  listLayers: route({
    ...{ method: 'GET', path: '/v1/layers', ...read },
    summary: 'List layers by their ids.',
    params: none,
    query: page,
    reply: ok(LayerPage),
  }),
  getLayer: route({
    ...{ method: 'GET', path: '/v1/layers/{layerId}', ...layer, ...read },
    summary: 'Show a layer.',
    reply: ok(Layer),
  }),
  verifyLayer: route({
    ...{ method: 'POST', path: '/v1/layers/{layerId}/verify', ...layer, ...read },
    summary: 'Read every byte of a layer and compare the digests.',
    reply: ok(LayerVerifyReport),
  }),
  removeLayer: route({
    ...{ method: 'DELETE', path: '/v1/layers/{layerId}', ...layer, ...write },
    summary:
      'Remove a layer: every name of it. Its data stays for what uses it, until a later collection.',
    body: noBody,
    reply: empty,
  }),
  listLayerRefs: route({
    ...{ method: 'GET', path: '/v1/layer-refs', ...read },
    summary: 'List the names of layers.',
    params: none,
    query: LayerRefListQuery,
    reply: ok(LayerRefPage),
  }),
  resolveLayerRef: route({
    ...{ method: 'GET', path: '/v1/resolve', ...read },
    summary: 'Show which layer a name, floating or not, means now.',
    params: none,
    query: ResolveQuery,
    reply: ok(LayerRef),
  }),
  createLayerRef: route({
    ...{ method: 'PUT', path: '/v1/layer-refs/{kind}/{name}/{version}', ...ref, ...write },
    summary: 'Give a layer a name. A name that means another layer is already-exists.',
    body: jsonBody(LayerRefCreate),
    reply: ok(LayerRef),
  }),
  removeLayerRef: route({
    ...{ method: 'DELETE', path: '/v1/layer-refs/{kind}/{name}/{version}', ...ref, ...write },
    summary: 'Remove a name; the layer stays while anything else refers to it.',
    body: noBody,
    reply: empty,
  }),
  listEnvironments: route({
    ...{ method: 'GET', path: '/v1/environments', ...read },
    summary: 'List environments by name.',
    params: none,
    query: page,
    reply: ok(EnvironmentPage),
  }),
  getEnvironment: route({
    ...{ method: 'GET', path: '/v1/environments/{name}', ...environment, ...read },
    summary: 'Show an environment.',
    reply: ok(Environment),
  }),
  putEnvironment: route({
    ...{ method: 'PUT', path: '/v1/environments/{name}', ...environment, ...write },
    summary: 'Create or replace an environment.',
    body: jsonBody(EnvironmentPut),
    reply: ok(Environment),
  }),
  removeEnvironment: route({
    ...{ method: 'DELETE', path: '/v1/environments/{name}', ...environment, ...write },
    summary: 'Remove an environment. Sandboxes made from it are not touched.',
    body: noBody,
    reply: empty,
  }),
} as const;
