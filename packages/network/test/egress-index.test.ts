import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { filterNpm, filterPypi } from '@dsec/network';
import { afterEach, describe, expect, test } from 'vitest';
import {
  endAll,
  rawExchange,
  SANDBOX_AUTHORITY,
  secureClient,
  secureHost,
  startEgress,
} from './egress-fixtures.ts';

afterEach(endAll);

const AS_OF = '2024-05-01';
const INDEX = '93.184.216.34';
const FILES = '93.184.216.35';
const names = {
  ...{ 'pypi.org': INDEX, 'registry.npmjs.org': INDEX },
  'files.pythonhosted.org': FILES,
};
const PYPI_JSON = 'application/vnd.pypi.simple.v1+json';

const pypiFile = (version: string, time: string | undefined) => ({
  filename: `demo-${version}.tar.gz`,
  url: `https://files.pythonhosted.org/packages/aa/demo-${version}.tar.gz`,
  hashes: { sha256: version.padStart(64, '0') },
  'requires-python': '>=3.8',
  ...(time === undefined ? {} : { 'upload-time': time }),
});
const PYPI = {
  ...{ meta: { 'api-version': '1.1' }, name: 'demo', versions: ['1', '2', '3'] },
  files: [
    pypiFile('1', '2024-04-30T23:59:59.9Z'),
    pypiFile('2', '2024-05-01T00:00:01Z'),
    pypiFile('3', undefined),
  ],
};
const npmVersion = (version: string) => ({
  dist: { tarball: `https://registry.npmjs.org/demo/-/demo-${version}.tgz` },
});
const NPM = {
  ...{ _id: 'demo', name: 'demo', readme: 'now with 2.0.0' },
  'dist-tags': { latest: '2.0.0', old: '1.0.0', next: '2.0.0' },
  versions: {
    ...{ '1.0.0': npmVersion('1.0.0'), '1.1.0': npmVersion('1.1.0') },
    ...{ '1.2.0-rc': npmVersion('1.2.0-rc'), '2.0.0': npmVersion('2.0.0') },
  },
  time: {
    ...{ created: '2020-01-01T00:00:00Z', modified: '2025-01-01T00:00:00Z' },
    ...{ '1.0.0': '2020-01-01T00:00:00Z', '1.1.0': '2024-01-01T00:00:00Z' },
    ...{ '1.2.0-rc': '2024-02-01T00:00:00Z', '2.0.0': '2025-01-01T00:00:00Z' },
  },
};

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

async function start(service: 'pypi' | 'npm', answer: Answer, terms: object) {
  const heard: string[] = [];
  const server = createServer((request, response) => {
    heard.push(`${request.headers.host}${request.url} ${request.headers.accept}`);
    answer(request, response);
  });
  const serve = (socket: Socket) => void server.emit('connection', socket);
  const hosts = {
    [`${INDEX}:443`]: await secureHost(
      service === 'pypi' ? 'pypi.org' : 'registry.npmjs.org',
      serve,
    ),
    [`${FILES}:443`]: await secureHost('files.pythonhosted.org', serve),
  };
  const rules = [{ kind: 'service' as const, target: service }];
  const egress = await startEgress({ rules, names, hosts, terms: { [service]: terms } });
  const get = async (name: string, path: string, more = '', method = 'GET') => {
    const { certificatePem: ca } = SANDBOX_AUTHORITY.material;
    const client = await secureClient(egress.tls, { servername: name, ca });
    const text = `${method} ${path} HTTP/1.1\r\nHost: ${name}\r\n${more}Connection: close\r\n\r\n`;
    const reply = await rawExchange(client, text);
    const [head = '', ...body] = reply.split('\r\n\r\n');
    return { status: Number(head.split(' ')[1]), head, body: body.join('\r\n\r\n') };
  };
  return { get, heard, denied: egress.denied };
}

const json =
  (type: string, document: unknown): Answer =>
  (request, response) => {
    if (request.url?.includes('/-/') || request.url?.startsWith('/packages/')) {
      response.end('bytes of a file');
      return;
    }
    response.writeHead(200, { 'content-type': type }).end(JSON.stringify(document));
  };

describe('pypi', () => {
  const accept = `Accept: ${PYPI_JSON}\r\n`;

  test('later releases are not in the index, nor to be had by their address', async () => {
    const { get, heard, denied } = await start('pypi', json(PYPI_JSON, PYPI), { asOf: AS_OF });
    const early = await get('files.pythonhosted.org', '/packages/aa/demo-1.tar.gz');
    expect(early.status).toBe(403);
    const { head, body, status } = await get('pypi.org', '/simple/Demo/', accept);
    expect([status, heard]).toEqual([200, [`pypi.org/simple/demo/ ${PYPI_JSON}`]]);
    expect(head).toContain('cache-control: no-store');
    expect(JSON.parse(body).files).toEqual(PYPI.files.slice(0, 1));
    expect(body).not.toMatch(/versions|demo-2|demo-3/);
    const file = (version: string) =>
      get('files.pythonhosted.org', `/packages/aa/demo-${version}.tar.gz`);
    expect(await file('1')).toMatchObject({ status: 200, body: 'bytes of a file' });
    expect(await file('1.metadata')).toMatchObject({ status: 403 });
    expect(
      (await get('files.pythonhosted.org', '/packages/aa/demo-1.tar.gz.metadata')).status,
    ).toBe(200);
    expect((await file('2')).status).toBe(403);
    expect((await file('3')).status).toBe(403);
    expect(denied.every(({ reason }) => reason === 'left-out')).toBe(true);
  });

  test('clients without JSON get a page', async () => {
    const { get } = await start('pypi', json(PYPI_JSON, PYPI), { asOf: AS_OF });
    const { head, body } = await get('pypi.org', '/simple/demo/', 'Accept: text/html\r\n');
    expect(head).toContain('text/html');
    expect(body.match(/<a [^>]*>[^<]*<\/a>/g)).toEqual([
      `<a href="https://files.pythonhosted.org/packages/aa/demo-1.tar.gz#sha256=${'1'.padStart(64, '0')}"` +
        ' data-requires-python="&#62;=3.8">demo-1.tar.gz</a>',
    ]);
  });

  test('a denied project, the other interfaces of the index, and other methods', async () => {
    const terms = { deny: ['Task_Project'] };
    const { get, heard, denied } = await start('pypi', json(PYPI_JSON, PYPI), terms);
    for (const path of [
      ...['/simple/task-project/', '/simple/TASK.project', '/simple/', '/pypi/demo/json'],
      ...[
        '/simple/%74ask-project/',
        '/simple/../simple/task-project/',
        '//simple/demo/',
        '/search',
      ],
    ]) {
      expect([path, (await get('pypi.org', path, accept)).status]).toEqual([path, 403]);
    }
    expect((await get('pypi.org', '/simple/demo/', accept, 'HEAD')).status).toBe(403);
    const post = await get('pypi.org', '/simple/demo/', 'Content-Length: 0\r\n', 'POST');
    expect(post.status).toBe(403);
    expect(heard).toEqual([]);
    expect(denied.length).toBe(10);
    const open = await get('pypi.org', '/simple/demo/', accept);
    expect(JSON.parse(open.body).files).toHaveLength(3);
  });

  test('an index that names no times, is no JSON, or is not there gives nothing', async () => {
    const html = await start('pypi', json('text/html', PYPI), { asOf: AS_OF });
    expect((await html.get('pypi.org', '/simple/demo/', accept)).status).toBe(501);
    const broken: Answer = (_, response) =>
      void response.writeHead(200, { 'content-type': PYPI_JSON }).end('{');
    const bad = await start('pypi', broken, { asOf: AS_OF });
    expect((await bad.get('pypi.org', '/simple/demo/', accept)).status).toBe(502);
    const absent: Answer = (_, response) => void response.writeHead(404).end('demo-2');
    const none = await start('pypi', absent, { asOf: AS_OF });
    expect(await none.get('pypi.org', '/simple/demo/', accept)).toMatchObject({
      status: 404,
      body: '',
    });
  });
});

describe('npm', () => {
  test('later versions are gone, tags go with them, and files by their address', async () => {
    const { get, heard } = await start('npm', json('application/json', NPM), { asOf: AS_OF });
    const { status, body } = await get('registry.npmjs.org', '/demo');
    expect([status, heard]).toEqual([200, ['registry.npmjs.org/demo application/json']]);
    const document = JSON.parse(body);
    expect(Object.keys(document.versions)).toEqual(['1.0.0', '1.1.0', '1.2.0-rc']);
    expect(document['dist-tags']).toEqual({ old: '1.0.0', latest: '1.1.0' });
    expect(body).not.toContain('2.0.0');
    expect((await get('registry.npmjs.org', '/demo/-/demo-1.1.0.tgz')).status).toBe(200);
    for (const path of ['/demo/-/demo-2.0.0.tgz', '/demo/2.0.0', '/-/v1/search?text=x', '/-/all']) {
      expect([path, (await get('registry.npmjs.org', path)).status]).toEqual([path, 403]);
    }
  });

  test('scoped names, in both forms, and denied ones', async () => {
    const terms = { deny: ['@scope/task'] };
    const { get, heard } = await start('npm', json('application/json', NPM), terms);
    for (const path of ['/@scope/task', '/@scope%2ftask', '/@scope%2Ftask']) {
      expect((await get('registry.npmjs.org', path)).status).toBe(403);
    }
    expect(heard).toEqual([]);
    expect((await get('registry.npmjs.org', '/@scope/other')).status).toBe(200);
    expect(heard).toEqual(['registry.npmjs.org/@scope%2fother application/json']);
  });
});

test('documents of any other form hold nothing', () => {
  const terms = { asOf: AS_OF, base: 'https://x.example/' };
  for (const document of [
    null,
    [],
    1,
    'x',
    { files: 1 },
    { files: [1, null, {}] },
    { versions: [] },
  ]) {
    expect(filterPypi(document, terms)).toMatchObject({ document: { files: [] }, files: [] });
    expect(filterNpm(document, terms)).toMatchObject({ document: { versions: {} }, files: [] });
  }
});
