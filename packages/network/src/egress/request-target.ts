import { DsecError } from '@dsec/std';
import { normalizeWireName } from '../rules/name.ts';

/** A request as it was read, before anything of it is believed. */
export interface RequestHead {
  readonly method: string;
  readonly target: string;
  readonly httpVersion: string;
  /** Names and values in turns, as they came. */
  readonly rawHeaders: readonly string[];
}

/** What is known of the connection that the request came on. */
export interface RequestContext {
  /** The port that the sandbox connected to, or that its tunnel names. */
  readonly port: number;
  /** The name that TLS or a tunnel was opened for: every request must be for it. */
  readonly boundName?: string | undefined;
}

export interface RequestTarget {
  readonly name: string;
  readonly port: number;
  /** In origin form; empty for a tunnel. */
  readonly path: string;
  readonly isTunnel: boolean;
}

const AUTHORITY = /^([A-Za-z0-9._-]{1,254})(?::([0-9]{1,5}))?$/;

const malformed = (why: string) => new DsecError('protocol', `HTTP: ${why}`);
const mismatch = (why: string) => new DsecError('permission-denied', `HTTP: ${why}`);

/**
 * Where a request goes. Throws `protocol` for a head that two readers could read in two ways (THREATS D6),
 * and `permission-denied` where its host is another one than that of its target or of its connection.
 */
export function requestTarget(head: RequestHead, context: RequestContext): RequestTarget {
  checkFraming(head);
  const hostText = onlyHeader(head, 'host');
  // Python asks for tunnels by version 1.0, without a Host; its target says the same.
  const isBare = head.method === 'CONNECT' && hostText === undefined;
  const host = parseAuthority((isBare ? head.target : hostText) ?? '');
  if (host === undefined) throw malformed('no single, valid Host');
  if (head.method === 'CONNECT') return tunnelTarget(head.target, host, context);
  if (head.target.startsWith('http://')) return absoluteTarget(head.target, host, context);
  if (!/^\/[!-~]*$/.test(head.target) && !(head.target === '*' && head.method === 'OPTIONS')) {
    throw malformed('a target in no permitted form');
  }
  if ((host.port ?? context.port) !== context.port) throw mismatch('Host names another port');
  checkBound(host.name, context);
  return { name: host.name, port: context.port, path: head.target, isTunnel: false };
}

interface Authority {
  readonly name: string;
  readonly port: number | undefined;
}

function parseAuthority(text: string): Authority | undefined {
  const [, host, digits] = AUTHORITY.exec(text) ?? [];
  const name = host === undefined ? undefined : normalizeWireName(host);
  const port = digits === undefined ? undefined : Number(digits);
  if (name === undefined || port === 0 || (port ?? 0) > 65_535) return undefined;
  return { name, port };
}

function checkBound(name: string, { boundName }: RequestContext): void {
  if (boundName !== undefined && boundName !== name)
    throw mismatch('Host is not the name of the connection');
}

function tunnelTarget(target: string, host: Authority, context: RequestContext): RequestTarget {
  if (context.boundName !== undefined) throw malformed('a tunnel inside a connection to a name');
  const asked = parseAuthority(target);
  if (asked?.port === undefined) throw malformed('a tunnel without name and port');
  const isSame = host.name === asked.name && (host.port ?? asked.port) === asked.port;
  if (!isSame) throw mismatch('Host is not the end of the tunnel');
  return { name: asked.name, port: asked.port, path: '', isTunnel: true };
}

function absoluteTarget(target: string, host: Authority, context: RequestContext): RequestTarget {
  if (context.boundName !== undefined)
    throw malformed('an absolute target in a connection to a name');
  const rest = target.slice('http://'.length);
  const end = rest.search(/[/?]/);
  const asked = parseAuthority(end < 0 ? rest : rest.slice(0, end));
  if (asked === undefined || !/^[!-~]*$/.test(rest))
    throw malformed('an absolute target of no valid form');
  const port = asked.port ?? 80;
  if (host.name !== asked.name || (host.port ?? 80) !== port) {
    throw mismatch('Host is not the host of the target');
  }
  const path = end < 0 ? '/' : rest.slice(end);
  return {
    name: asked.name,
    port,
    path: path.startsWith('/') ? path : `/${path}`,
    isTunnel: false,
  };
}

/** The one value of a header; throws where it stands twice. */
function onlyHeader({ rawHeaders }: RequestHead, wanted: string): string | undefined {
  let value: string | undefined;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== wanted) continue;
    if (value !== undefined) throw malformed(`${wanted} twice`);
    value = rawHeaders[i + 1] ?? '';
  }
  return value;
}

function checkFraming(head: RequestHead): void {
  if (head.httpVersion !== '1.1' && head.httpVersion !== '1.0') throw malformed('not version 1');
  if (!/^[A-Z][A-Z-]{0,31}$/.test(head.method)) throw malformed('a method of no valid form');
  for (let i = 0; i < head.rawHeaders.length; i += 2) {
    if (!/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(head.rawHeaders[i] ?? '')) {
      throw malformed('a header of no valid name');
    }
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is refused
    if (/[\u0000-\u0008\u000a-\u001f\u007f]/.test(head.rawHeaders[i + 1] ?? '')) {
      throw malformed('a header with control characters');
    }
  }
  const length = onlyHeader(head, 'content-length');
  const coding = onlyHeader(head, 'transfer-encoding');
  if (length !== undefined && !/^[0-9]{1,15}$/.test(length))
    throw malformed('a length of no valid form');
  if (coding === undefined) return;
  if (length !== undefined) throw malformed('two ways to end a body');
  if (head.httpVersion !== '1.1' || coding.toLowerCase() !== 'chunked') {
    throw malformed('a coding other than chunked');
  }
}

/** Headers that belong to one connection and not to the message. */
const HOP_BY_HOP = new Set([
  ...['connection', 'keep-alive', 'proxy-connection', 'proxy-authenticate', 'proxy-authorization'],
  ...['te', 'trailer', 'upgrade', 'expect', 'http2-settings', 'alt-svc'],
]);

/** The headers of a message that go on: neither those of the connection nor those that it names. */
export function forwardedHeaders(rawHeaders: readonly string[]): string[] {
  const named = new Set<string>();
  eachHeader(rawHeaders, (name, value) => {
    if (name === 'connection')
      for (const one of value.split(',')) named.add(one.trim().toLowerCase());
  });
  // What frames the message and says whom it is for cannot be struck out this way.
  for (const kept of ['host', 'content-length', 'transfer-encoding']) named.delete(kept);
  const kept: string[] = [];
  eachHeader(rawHeaders, (name, value, written) => {
    if (!HOP_BY_HOP.has(name) && !named.has(name)) kept.push(written, value);
  });
  return kept;
}

export function withoutHeader(headers: readonly string[], unwanted: string): string[] {
  const kept: string[] = [];
  eachHeader(headers, (name, value, written) => {
    if (name !== unwanted) kept.push(written, value);
  });
  return kept;
}

function eachHeader(
  rawHeaders: readonly string[],
  visit: (name: string, value: string, written: string) => void,
): void {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const written = rawHeaders[i] ?? '';
    visit(written.toLowerCase(), rawHeaders[i + 1] ?? '', written);
  }
}
