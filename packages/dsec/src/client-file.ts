/** Where clients on this machine find their server and their key. */
import { readFileSync } from 'node:fs';
import { type Iam, newSecret } from '@dsec/iam';
import { OPERATION_CLASSES } from '@dsec/protocol';
import { DsecError, type PrincipalId, type ProjectId, systemRandom } from '@dsec/std';
import { baseUrlOf, type ListenAddress } from '@dsec/transport';
import { writePrivateFile } from './private-file.ts';

export interface ClientFile {
  /** `http://127.0.0.1:7720` or `unix:/PATH`. */
  readonly url: string;
  readonly apiKey: string;
}

/** Whose the key of the file is. */
export interface KeyOwner {
  readonly project: ProjectId;
  readonly principal: PrincipalId;
}

/** As clients take it. */
export function urlOf(address: ListenAddress): string {
  return 'socketPath' in address ? `unix:${address.socketPath}` : baseUrlOf(address);
}

/** What such a file holds; `undefined` when it is none. */
export function readClientFile(path: string): ClientFile | undefined {
  try {
    const { url, apiKey } = JSON.parse(readFileSync(path, 'utf8')) as Partial<ClientFile>;
    if (typeof url === 'string' && typeof apiKey === 'string') return { url, apiKey };
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
  address: ListenAddress,
  iam: Pick<Iam, 'authenticate' | 'create'>,
  owner: KeyOwner,
): Promise<ClientFile> {
  const url = urlOf(address);
  const known = readClientFile(path);
  const isGood = known !== undefined && (await isValidKey(iam, known.apiKey));
  if (isGood && known.url === url) return known;
  const apiKey = isGood ? known.apiKey : newSecret(systemRandom);
  writePrivateFile(path, `${JSON.stringify({ url, apiKey })}\n`);
  if (!isGood) {
    await iam.create({ name: 'operator', ...owner, scopes: OPERATION_CLASSES, secret: apiKey });
  }
  return { url, apiKey };
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
