import {
  forwardedHeaders,
  type RequestContext,
  type RequestHead,
  requestTarget,
} from '@dsec/network';
import { expect, test } from 'vitest';

const head = (target: string, more: Partial<RequestHead> = {}): RequestHead => ({
  ...{ method: 'GET', target, httpVersion: '1.1', rawHeaders: ['Host', 'open.example.com'] },
  ...more,
});
const codeOf = (request: RequestHead, context: RequestContext = { port: 80 }) => {
  try {
    requestTarget(request, context);
  } catch (thrown) {
    return (thrown as { code?: string }).code;
  }
  return 'none';
};
const name = 'open.example.com';

test.each<[RequestHead, string, number]>([
  [head('/'), '/', 80],
  [head('/a?b=%20#'), '/a?b=%20#', 80],
  [head('*', { method: 'OPTIONS' }), '*', 80],
  [head('http://open.example.com'), '/', 80],
  [head('http://OPEN.example.com:80?q'), '/?q', 80],
  [head('http://open.example.com:81/x', { rawHeaders: ['Host', 'open.example.com:81'] }), '/x', 81],
  [head('/', { rawHeaders: ['HOST', 'Open.Example.com.:80'] }), '/', 80],
])('%j goes to %s', (request, path, port) => {
  expect(requestTarget(request, { port: 80 })).toEqual({ name, port, path, isTunnel: false });
});

test('a tunnel goes where it says, from any port, and not inside something that has a name', () => {
  const tunnel = head('open.example.com:443', { method: 'CONNECT' });
  expect(requestTarget(tunnel, { port: 80 })).toEqual({
    name,
    port: 443,
    path: '',
    isTunnel: true,
  });
  const bare = { ...tunnel, httpVersion: '1.0', rawHeaders: [] };
  expect(requestTarget(bare, { port: 80 })).toMatchObject({ name, port: 443, isTunnel: true });
  expect(codeOf({ ...bare, target: '127.0.0.1:443' })).toBe('protocol');
  expect(codeOf(tunnel, { port: 443, boundName: name })).toBe('protocol');
  expect(codeOf({ ...tunnel, target: 'open.example.com' })).toBe('protocol');
  expect(codeOf({ ...tunnel, target: 'open.example.com:0' })).toBe('protocol');
});

test.each([
  ...[
    '',
    'x',
    '//',
    '/a b',
    '/\u00e4',
    '*',
    'https://open.example.com/',
    'http:///x',
    'HTTP://open.example.com/',
  ],
  ...[
    'http://user@open.example.com/',
    'http://[::1]/',
    'http://127.0.0.1/',
    'http://open.example.com\\x',
  ],
])('the target %j is refused', (target) => {
  expect(codeOf(head(target))).toBe(target === '//' ? 'none' : 'protocol');
});

test.each([
  ...[
    '',
    ' ',
    '127.0.0.1',
    '[::1]',
    'open.example.com:',
    'open.example.com:99999',
    'a@open.example.com',
  ],
  ...[
    'open.example.com, other.example.com',
    'open.example.com/x',
    'localhost',
    'open..example.com',
  ],
])('the host %j is refused', (host) => {
  expect(codeOf(head('/', { rawHeaders: ['Host', host] }))).toBe('protocol');
});

test.each<readonly string[]>([
  ['Content-Length', '1', 'content-length', '1'],
  ['Content-Length', '1', 'Transfer-Encoding', 'chunked'],
  ['Content-Length', '1,1'],
  ['Content-Length', '0x1'],
  ['Transfer-Encoding', 'identity'],
  ['Transfer-Encoding', 'chunked, chunked'],
  ['Transfer-Encoding', ' chunked'],
  ['host', 'open.example.com'],
  ['X\u0000', 'y'],
  ['X', 'a\nb'],
  ['X:', 'y'],
])('%s %s %s %s is refused', (...headers) => {
  const given = headers.filter((text) => typeof text === 'string');
  const rawHeaders = ['Host', 'open.example.com', ...given];
  expect(codeOf(head('/', { method: 'POST', rawHeaders }))).toBe('protocol');
});

test('a request for another name than that of its connection is denied', () => {
  const context = { port: 443, boundName: 'other.example.com' };
  expect(codeOf(head('/'), context)).toBe('permission-denied');
  expect(codeOf(head('http://open.example.com/'), context)).toBe('protocol');
});

test('what belongs to one connection does not go on, and what frames a message cannot be struck out', () => {
  const raw = [
    'Host',
    'a',
    'Connection',
    'X-Own, host,Content-Length',
    'X-Own',
    '1',
    'Content-Length',
    '2',
  ];
  expect(forwardedHeaders([...raw, 'TE', 'trailers', 'Accept', '*/*'])).toEqual([
    ...['Host', 'a', 'Content-Length', '2', 'Accept', '*/*'],
  ]);
});
