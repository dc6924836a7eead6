import { createHash } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { DsecError, MIB } from '@dsec/std';
import { createRecentMap } from '../recent-map.ts';
import { projectOf } from '../rules/compile.ts';
import type { NameRule } from '../rules/compiled.ts';
import type { HttpExchange, ServeIndex } from './http-connection.ts';
import { passAnswer } from './http-proxy.ts';
import { type FilteredIndex, filterNpm, filterPypi } from './index-documents.ts';
import { withoutHeader } from './request-target.ts';

const DOCUMENT_BYTES_MAX = 16 * MIB;
const DOCUMENTS_MAX = 8;
const SANDBOXES_MAX = 4096;
/** Files that one sandbox may fetch, of those that an index named to it last. */
const FILES_MAX = 65_536;

export interface IndexFilter {
  readonly serve: ServeIndex;
  /** Drops what a sandbox that is gone had seen. */
  forget(sandbox: string): void;
}

/**
 * Package indexes without releases and projects that do not exist for a sandbox (THREATS A10). Only documents
 * of the index that can be filtered pass, and only files that such a document named to this sandbox: what is
 * left out cannot be had by its address either.
 */
export function createIndexFilter(): IndexFilter {
  const seen = createRecentMap<string, FileSet>(SANDBOXES_MAX);
  let reading = 0;

  const filesOf = (sandbox: string) => {
    let files = seen.get(sandbox);
    if (files === undefined) {
      files = createFileSet();
      seen.set(sandbox, files);
    }
    return files;
  };

  const serveDocument = async (exchange: HttpExchange, project: string) => {
    if (reading >= DOCUMENTS_MAX) {
      throw new DsecError('overloaded', `${DOCUMENTS_MAX} indexes are being read`);
    }
    reading += 1;
    try {
      const index = await readIndex(exchange, project);
      if (index === undefined) return;
      const files = filesOf(exchange.connection.flow.sandbox);
      for (const url of index.files) files.add(url);
      answerDocument(exchange, index);
    } finally {
      reading -= 1;
    }
  };

  const serveFile = async (exchange: HttpExchange) => {
    const url = `${exchange.target.name}${pathOnly(exchange.path)}`;
    if (!filesOf(exchange.connection.flow.sandbox).has(url)) throw leftOut(exchange);
    passAnswer(
      await exchange.send(exchange.path, exchange.headers),
      exchange.response,
      exchange.connection,
    );
  };

  return {
    async serve(exchange) {
      const { method } = exchange.request;
      if (method !== 'GET' && method !== 'HEAD') throw leftOut(exchange);
      const project = projectIn(exchange.target.rule, exchange.path);
      if (project === undefined) return serveFile(exchange);
      if (method !== 'GET' || exchange.target.rule.deny?.includes(project) === true) {
        throw leftOut(exchange);
      }
      return serveDocument(exchange, project);
    },
    forget: (sandbox) => seen.delete(sandbox),
  };
}

function leftOut(exchange: HttpExchange): DsecError {
  exchange.deny('left-out');
  return new DsecError(
    'permission-denied',
    `${exchange.path.slice(0, 200)} is left out of this index`,
  );
}

const pathOnly = (path: string) => path.replace(/[?#].*$/, '');

/** The project whose document a path asks for; `undefined` for every other path. */
function projectIn({ index }: NameRule, path: string): string | undefined {
  const plain = pathOnly(path);
  if (index === 'pypi') {
    const name = /^\/simple\/([A-Za-z0-9][A-Za-z0-9._-]{0,127})\/?$/.exec(plain)?.[1];
    return name === undefined ? undefined : projectOf('pypi', name);
  }
  const name = /^\/((@[\w.~-]{1,100}(\/|%2f))?[\w.~][\w.~-]{0,213})$/i.exec(plain)?.[1];
  return name === undefined ? undefined : projectOf('npm', name.replace(/%2f/i, '/'));
}

const PYPI_JSON = 'application/vnd.pypi.simple.v1+json';

async function readIndex(
  exchange: HttpExchange,
  project: string,
): Promise<FilteredIndex | undefined> {
  const { rule, name } = exchange.target;
  const isPypi = rule.index === 'pypi';
  const unwanted = ['accept', 'accept-encoding', 'if-none-match', 'if-modified-since', 'range'];
  const headers = unwanted.reduce<string[]>(withoutHeader, [...exchange.headers]);
  const accept = isPypi ? PYPI_JSON : 'application/json';
  const path = isPypi ? `/simple/${project}/` : `/${project.replace('/', '%2f')}`;
  const answer = await exchange.send(path, [
    ...headers,
    ...['Accept', accept, 'Accept-Encoding', 'identity'],
  ]);
  if (answer.statusCode !== 200) {
    answer.destroy();
    const status = answer.statusCode === 404 ? 404 : 502;
    exchange.response.writeHead(status, { 'content-length': 0 }).end();
    return undefined;
  }
  const text = await readBody(answer);
  exchange.connection.flow.count('down', text.length);
  const document = parseDocument(text, answer, accept);
  const filter = isPypi ? filterPypi : filterNpm;
  return filter(document, { asOf: rule.asOf, base: `https://${name}${path}` });
}

function parseDocument(text: Buffer, answer: IncomingMessage, accept: string): unknown {
  const type = answer.headers['content-type'] ?? '';
  if (!type.startsWith(accept)) {
    throw new DsecError(
      'unsupported',
      `the index gives ${type.slice(0, 64)}, which names no times`,
    );
  }
  try {
    return JSON.parse(text.toString('utf8'));
  } catch (thrown) {
    throw new DsecError('unavailable', 'the index gives no JSON', { cause: thrown });
  }
}

async function readBody(answer: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  let length = 0;
  for await (const part of answer as AsyncIterable<Buffer>) {
    length += part.length;
    if (length > DOCUMENT_BYTES_MAX) {
      throw new DsecError('too-large', `an index document has over ${DOCUMENT_BYTES_MAX} bytes`);
    }
    parts.push(part);
  }
  return Buffer.concat(parts);
}

function answerDocument({ request, response, target }: HttpExchange, index: FilteredIndex): void {
  const takesJson =
    target.rule.index === 'npm' || (request.headers.accept ?? '').includes(PYPI_JSON);
  const body = takesJson ? JSON.stringify(index.document) : index.html();
  const json = target.rule.index === 'npm' ? 'application/json' : PYPI_JSON;
  response.writeHead(200, {
    'content-type': takesJson ? json : 'text/html; charset=utf-8',
    'content-length': Buffer.byteLength(body),
    'cache-control': 'no-store',
  });
  response.end(body);
}

interface FileSet {
  add(url: string): void;
  has(url: string): boolean;
}

/** Addresses by 48 bits of their digest; the ones named first are forgotten first. */
function createFileSet(): FileSet {
  const keys = new Set<number>();
  const keyOf = (url: string) => createHash('sha256').update(url).digest().readUIntBE(0, 6);
  return {
    add(url) {
      const key = keyOf(url);
      keys.delete(key);
      keys.add(key);
      if (keys.size <= FILES_MAX) return;
      const [oldest] = keys;
      if (oldest !== undefined) keys.delete(oldest);
    },
    has: (url) => keys.has(keyOf(url)),
  };
}
