import {
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  X509Certificate,
} from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import { DAY_MS, DsecError } from '@dsec/std';
import { createRecentMap } from '../recent-map.ts';
import { der } from './der.ts';

/** What makes an authority again. The key is a secret of the node: it is never inside the sandbox. */
export interface AuthorityMaterial {
  readonly certificatePem: string;
  readonly keyPem: string;
}

/** Vouches for the proxy inside one sandbox, which is the only one to trust it. */
export interface CertificateAuthority {
  readonly material: AuthorityMaterial;
  /** For a TLS server that answers for this name. */
  contextFor(name: string): SecureContext;
}

const LEAVES_MAX = 256;
const AUTHORITY_DAYS = 400;
const LEAF_DAYS = 90;
/** Clocks inside a virtual machine may be behind. */
const SKEW_MS = DAY_MS;

/** A new authority with a key of its own (ECDSA P-256). `commonName` is what people see in a certificate. */
export function createAuthorityMaterial(commonName: string, nowMs: number): AuthorityMaterial {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const certificatePem = certificate({
    ...{
      subject: commonName,
      issuer: commonName,
      publicKey,
      signer: privateKey,
      isAuthority: true,
    },
    ...{ fromMs: nowMs - SKEW_MS, toMs: nowMs + AUTHORITY_DAYS * DAY_MS },
  });
  return { certificatePem, keyPem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
}

/** Opens an authority that was made before. Throws `data-loss` where key and certificate do not fit. */
export function openAuthority(
  material: AuthorityMaterial,
  now: () => number = Date.now,
): CertificateAuthority {
  const signer = createPrivateKey(material.keyPem);
  const own = new X509Certificate(material.certificatePem);
  if (!own.checkPrivateKey(signer)) {
    throw new DsecError('data-loss', 'an authority whose key is not that of its certificate');
  }
  const issuer = own.subject.replace(/^CN=/, '');
  const leaf = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const key = leaf.privateKey.export({ type: 'pkcs8', format: 'pem' });
  const leaves = createRecentMap<string, { untilMs: number; context: SecureContext }>(LEAVES_MAX);
  return {
    material,
    contextFor(name) {
      const nowMs = now();
      const known = leaves.get(name);
      if (known !== undefined && known.untilMs > nowMs) return known.context;
      const toMs = nowMs + LEAF_DAYS * DAY_MS;
      const cert = certificate({
        ...{ subject: name, issuer, publicKey: leaf.publicKey, signer, isAuthority: false },
        ...{ fromMs: nowMs - SKEW_MS, toMs },
      });
      const context = createSecureContext({ key, cert, minVersion: 'TLSv1.2' });
      leaves.set(name, { untilMs: toMs - DAY_MS, context });
      return context;
    },
  };
}

interface CertificateFields {
  readonly subject: string;
  readonly issuer: string;
  readonly publicKey: KeyObject;
  readonly signer: KeyObject;
  readonly isAuthority: boolean;
  readonly fromMs: number;
  readonly toMs: number;
}

const ECDSA_WITH_SHA256 = der.sequence(der.oid('1.2.840.10045.4.3.2'));

/** An X.509 certificate (RFC 5280) as PEM. */
function certificate(fields: CertificateFields): string {
  const spki = fields.publicKey.export({ type: 'spki', format: 'der' });
  const body = der.sequence(
    der.tagged(0, der.integer(Buffer.from([2]))),
    der.integer(Buffer.concat([Buffer.from([0x40]), randomBytes(15)])),
    ECDSA_WITH_SHA256,
    commonName(fields.issuer),
    der.sequence(der.time(fields.fromMs), der.time(fields.toMs)),
    commonName(fields.subject),
    spki,
    der.tagged(3, der.sequence(...(fields.isAuthority ? AUTHORITY_USE : leafUse(fields.subject)))),
  );
  const signature = sign('sha256', body, fields.signer);
  const whole = der.sequence(body, ECDSA_WITH_SHA256, der.bits(signature));
  const lines = whole.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN CERTIFICATE-----\n${lines.join('\n')}\n-----END CERTIFICATE-----\n`;
}

/** A common name holds 64 characters at most; the name that counts is in the extension. */
const commonName = (text: string) =>
  der.sequence(der.set(der.sequence(der.oid('2.5.4.3'), der.text(text.slice(0, 64)))));

const extension = (oid: string, isCritical: boolean, value: Buffer) =>
  der.sequence(der.oid(oid), ...(isCritical ? [der.yes] : []), der.octets(value));

const BASIC_CONSTRAINTS = '2.5.29.19';
const KEY_USAGE = '2.5.29.15';
/** May sign certificates, and none that may sign further ones. */
const AUTHORITY_USE = [
  extension(BASIC_CONSTRAINTS, true, der.sequence(der.yes, der.integer(Buffer.from([0])))),
  extension(KEY_USAGE, true, der.bits(Buffer.from([0x06]), 1)),
];

const leafUse = (name: string) => [
  extension(BASIC_CONSTRAINTS, true, der.sequence()),
  extension(KEY_USAGE, true, der.bits(Buffer.from([0x80]), 7)),
  extension('2.5.29.37', false, der.sequence(der.oid('1.3.6.1.5.5.7.3.1'))),
  extension('2.5.29.17', false, der.sequence(der.dnsName(name))),
];
