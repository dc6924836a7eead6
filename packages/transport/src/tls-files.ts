/** A certificate and its key, in files that somebody renews while a server runs. */
import { X509Certificate } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext, type SecureContextOptions } from 'node:tls';
import { DsecError, SECOND_MS } from '@dsec/std';

export interface TlsFiles {
  /** The certificate and those between it and its root, in PEM. */
  readonly certFile: string;
  readonly keyFile: string;
  /** Told of a change that cannot be used; what was read before it is used on. */
  readonly onFault?: (error: DsecError) => void;
  /** How often the files are looked at. Default: 10 s. */
  readonly everyMs?: number;
}

const EVERY_MS = 10 * SECOND_MS;
const HANDSHAKE_MS = 5 * SECOND_MS;

/** Throws `invalid-argument` for files that are not there or do not belong together. */
export function tlsOptionsOf(files: TlsFiles) {
  return { ...contextOf(files), handshakeTimeout: HANDSHAKE_MS };
}

/** Calls `change` after the files were changed to others that can be used. Returns what ends it. */
export function watchTlsFiles(
  files: TlsFiles,
  change: (context: SecureContextOptions) => void,
): () => void {
  const { certFile, keyFile, onFault = () => undefined } = files;
  // Names of files may be links to others, as those of mounted secrets are.
  const stamp = () =>
    [certFile, keyFile].map((file) => {
      const { ino = 0, mtimeMs = 0, size = 0 } = statSync(file, { throwIfNoEntry: false }) ?? {};
      return `${ino} ${mtimeMs} ${size}`;
    });
  let seen = String(stamp());
  const timer = setInterval(() => {
    const now = String(stamp());
    if (now === seen) return;
    seen = now;
    try {
      change(contextOf(files));
    } catch (thrown) {
      onFault(thrown as DsecError);
    }
  }, files.everyMs ?? EVERY_MS);
  timer.unref();
  return () => clearInterval(timer);
}

/** DNS names and addresses that a certificate is for; those with a `*` are left out. */
export function namesOfCertificate(certFile: string): readonly string[] {
  try {
    const { subjectAltName = '' } = new X509Certificate(readFileSync(certFile));
    return [...subjectAltName.matchAll(/(?:DNS|IP Address):([^,\s]+)/g)]
      .map(([, name = '']) => name.toLowerCase())
      .filter((name) => !name.includes('*'));
  } catch (cause) {
    throw unusable(certFile, cause);
  }
}

function contextOf({ certFile, keyFile }: TlsFiles) {
  try {
    const context = {
      cert: readFileSync(certFile),
      key: readFileSync(keyFile),
      minVersion: 'TLSv1.2',
    } as const;
    // Says whether they go together.
    createSecureContext(context);
    return context;
  } catch (cause) {
    throw unusable(`${certFile} and ${keyFile}`, cause);
  }
}

function unusable(files: string, cause: unknown): DsecError {
  // Its words name no content of the key.
  const why = cause instanceof Error ? cause.message : String(cause);
  return new DsecError('invalid-argument', `no TLS with ${files}: ${why}`, { cause });
}
