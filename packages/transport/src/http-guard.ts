import type { IncomingMessage } from 'node:http';
import { DsecError } from '@dsec/std';

/**
 * Whom a server answers at all. The checks hold on loopback too: a page in a browser can reach a
 * local server, by a name that it makes point there (DNS rebinding) or by a WebSocket from another
 * origin (THREATS F8).
 */
export interface Guard {
  /** Hosts that may be asked for, lower case, as in the Host header; one without a port fits every port. */
  readonly allowedHosts: ReadonlySet<string>;
  /**
   * Origins whose pages may call, as `https://dsec.example`. Programs send no origin and are not
   * concerned.
   */
  readonly allowedOrigins: ReadonlySet<string>;
  readonly headersMax: number;
  readonly targetBytesMax: number;
}

/** Throws for a request that must not be looked at further; `unauthenticated` if it says twice who calls. */
export function checkRequest(request: IncomingMessage, guard: Guard): void {
  const { url = '', headers } = request;
  if (!url.startsWith('/')) {
    throw new DsecError('invalid-argument', 'the request target must be a path of this server');
  }
  if (url.length > guard.targetBytesMax) {
    throw new DsecError('too-large', `a request target has at most ${guard.targetBytesMax} bytes`);
  }
  if (request.rawHeaders.length > 2 * guard.headersMax) {
    throw new DsecError('too-large', `a request has at most ${guard.headersMax} headers`);
  }
  checkHost(request, guard.allowedHosts);
  if (countOf(request, 'authorization') > 1) {
    // Whoever stands in front may have looked at another one than we would.
    throw new DsecError('unauthenticated', 'a request has at most one Authorization header');
  }
  checkOrigin(headers.origin, headers['sec-fetch-site'], guard.allowedOrigins);
}

/** How often a header was sent: those of some names Node tells only once. */
function countOf({ rawHeaders }: IncomingMessage, header: string): number {
  const isIt = (text: string, index: number) => index % 2 === 0 && text.toLowerCase() === header;
  return rawHeaders.filter(isIt).length;
}

function checkHost(request: IncomingMessage, allowed: ReadonlySet<string>): void {
  const hosts = countOf(request, 'host');
  if (hosts === 0) {
    throw new DsecError('invalid-argument', 'a request needs a Host header', {
      details: { field: 'host' },
    });
  }
  const host = request.headers.host?.toLowerCase() ?? '';
  if (hosts === 1 && (allowed.has(host) || allowed.has(host.replace(/:\d{1,5}$/, '')))) return;
  throw new DsecError('permission-denied', 'this server does not answer for the host asked for', {
    details: { about: 'host' },
  });
}

function checkOrigin(
  origin: string | undefined,
  fetchSite: string | string[] | undefined,
  allowed: ReadonlySet<string>,
): void {
  if (origin === undefined) {
    // A browser's own word that another site's page made this request, even one that carries no origin.
    if (fetchSite !== 'cross-site' && fetchSite !== 'same-site') return;
  } else if (allowed.has(origin)) {
    return;
  }
  throw new DsecError('permission-denied', 'pages of this origin may not call this server', {
    details: { about: 'origin' },
  });
}

/**
 * A body where none is expected is how requests are smuggled past a proxy that disagrees about
 * their length.
 */
export function hasBody(request: IncomingMessage): boolean {
  const { headers } = request;
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}
