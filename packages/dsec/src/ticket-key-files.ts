/** The key by which an apiserver signs tickets, and its public half for the edges, as files. */
import { createPrivateKey, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { DsecError } from '@dsec/std';
import { makeStateDirectory } from './config.ts';
import { writePrivateFile } from './private-file.ts';

export interface TicketKeyFiles {
  /** For `dsec apiserver --ticket-key`: `{"<key id>": "<PEM of the private key>"}`. */
  readonly privateFile: string;
  /** For `dsec edge --ticket-keys`: `{"<key id>": "<PEM of the public key>"}`. */
  readonly publicFile: string;
}

/**
 * Makes a key pair in a directory unless there is one, both files with mode 0600. The private one comes
 * last: once it is there, both are. `data-loss` when the public one has gone since.
 */
export function ensureTicketKeys(directory: string): TicketKeyFiles {
  const privateFile = join(directory, 'ticket-key.json');
  const publicFile = join(directory, 'ticket-keys.json');
  makeStateDirectory(directory);
  if (!existsSync(privateFile)) writeNewPair(privateFile, publicFile);
  if (existsSync(publicFile)) return { privateFile, publicFile };
  throw new DsecError('data-loss', `${publicFile} is gone; remove ${privateFile} for a new pair`);
}

function writeNewPair(privateFile: string, publicFile: string): void {
  const { publicKey, privateKey } = generateKeyPairSync('ed25519');
  const id = `k-${randomBytes(4).toString('hex')}`;
  const publicPem = publicKey.export({ type: 'spki', format: 'pem' });
  const privatePem = privateKey.export({ type: 'pkcs8', format: 'pem' });
  writePrivateFile(publicFile, `${JSON.stringify({ [id]: publicPem })}\n`);
  writePrivateFile(privateFile, `${JSON.stringify({ [id]: privatePem })}\n`);
}

/** The private key of such a file. Throws `invalid-argument` for anything else, and `not-found`. */
export function readTicketKey(file: string): {
  readonly id: string;
  readonly privateKey: KeyObject;
} {
  const text = readFileSync(file, 'utf8');
  const fail = (why: string, cause?: unknown) =>
    new DsecError('invalid-argument', `${file}: ${why}`, { cause });
  let found: [string, KeyObject][];
  try {
    const pems = Object.entries(JSON.parse(text) as Record<string, string>);
    found = pems.map(([id, pem]) => [id, createPrivateKey(pem)]);
  } catch (thrown) {
    throw fail('not a JSON object with one private key in PEM, by its id', thrown);
  }
  const [first, ...others] = found;
  if (first === undefined || others.length > 0) throw fail('one private key is wanted');
  const [id, privateKey] = first;
  if (privateKey.asymmetricKeyType !== 'ed25519') throw fail(`the key ${id} is not Ed25519`);
  return { id, privateKey };
}
