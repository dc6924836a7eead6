/** Where clients on this machine find their server and their key. */
import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { type Iam, newSecret } from '@dsec/iam';
import { OPERATION_CLASSES } from '@dsec/protocol';
import { DsecError, type PrincipalId, type ProjectId, systemRandom } from '@dsec/std';
import { baseUrlOf, type ListenAddress } from '@dsec/transport';
import { writePrivateFile } from './private-file.ts';

export interface ClientFile {
  /** `http://127.0.0.1:7720`, `https://HOST:PORT` or `unix:/PATH`. */
  readonly url: string;
  readonly apiKey: string;
  /** By which an https server is known, where the system does not know it. */
  readonly caFile?: string;
}

export type ServerPlace = Pick<ClientFile, 'url' | 'caFile'>;

/** Whose the key of the file is. */
export interface KeyOwner {
  readonly project: ProjectId;
  readonly principal: PrincipalId;
}

/** As clients take it. */
export function urlOf(address: ListenAddress): string {
  return 'socketPath' in address ? `unix:${address.socketPath}` : baseUrlOf(address);
}

/**
 * Where clients of this machine find a server. One with TLS is called by a name of its certificate, and a
 * certificate that nobody else vouches for vouches for itself.
 */
export function placeOf(
  address: ListenAddress,
  certFile?: string,
  names: readonly string[] = [],
): ServerPlace {
  if (certFile === undefined || 'socketPath' in address) return { url: urlOf(address) };
  const own = names.find((name) => name === address.host) ?? names[0] ?? address.host;
  const url = `https://${own.includes(':') ? `[${own}]` : own}:${address.port}`;
  const { issuer, subject } = new X509Certificate(readFileSync(certFile));
  return issuer === subject ? { url, caFile: certFile } : { url };
}

/** What such a file holds; `undefined` when it is none. */
export function readClientFile(path: string): ClientFile | undefined {
  try {
    const { url, apiKey, caFile } = JSON.parse(readFileSync(path, 'utf8')) as Partial<ClientFile>;
    if (typeof url === 'string' && typeof apiKey === 'string') {
      return { url, apiKey, ...(typeof caFile === 'string' ? { caFile } : {}) };
    }
  } catch {
    // Absent, or not ours: a new one takes its place.
  }
  return undefined;
}

/**
 * Makes the file (mode 0600) say where the server is, with a key that may do everything: the one that it
 * holds while that is good, else a new one. The file is written first, so that no key is made that nobody
 * knows.
 */
export async function ensureClientFile(
  path: string,
  place: ServerPlace,
  iam: Pick<Iam, 'authenticate' | 'create'>,
  owner: KeyOwner,
): Promise<ClientFile> {
  const known = readClientFile(path);
  const isGood = known !== undefined && (await isValidKey(iam, known.apiKey));
  if (isGood && known.url === place.url && known.caFile === place.caFile) return known;
  const apiKey = isGood ? known.apiKey : newSecret(systemRandom);
  writePrivateFile(path, `${JSON.stringify({ ...place, apiKey })}\n`);
  if (!isGood) {
    await iam.create({ name: 'operator', ...owner, scopes: OPERATION_CLASSES, secret: apiKey });
  }
  return { ...place, apiKey };
}

async function isValidKey(iam: Pick<Iam, 'authenticate'>, apiKey: string): Promise<boolean> {
  try {
    await iam.authenticate(`Bearer ${apiKey}`);
    return true;
  } catch (thrown) {
    if (thrown instanceof DsecError && thrown.code === 'unauthenticated') return false;
    throw thrown;
  }
}
