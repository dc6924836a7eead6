/** A key as it is stored, and as the API shows it. */
import {
  isValid,
  type Key,
  KeyLimits,
  names,
  OPERATION_CLASSES,
  OperationClass,
} from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import Type, { type Static } from 'typebox';

/** How far from its first key a key may be. Each maker is a read of the store for each request. */
export const MAKERS_MAX = 8;

/** Secrets of a key that are good beside its own. */
export const PREVIOUS_MAX = 4;

const hash = Type.String({ pattern: '^[0-9a-f]{64}$', maxLength: 64 });

export const KeyRecord = names.record('KeyRecord', {
  format: Type.Literal(1),
  id: names.keyId,
  /** sha256 of the secret. */
  hash,
  /** Of secrets that were replaced and are good for a while yet. */
  previous: Type.Optional(
    names.listOfMax(
      names.record('PreviousSecret', { hash, untilMs: names.instantMs() }),
      PREVIOUS_MAX,
    ),
  ),
  name: names.name,
  project: names.projectId,
  principal: names.principalId,
  scopes: names.listOfMax(OperationClass, OPERATION_CLASSES.length, 1),
  createdAtMs: names.instantMs(),
  expiresAtMs: Type.Optional(names.instantMs()),
  revokedAtMs: Type.Optional(names.instantMs()),
  /** The key that made this one, the one that made that, and so on. A key holds while all of them do. */
  makers: Type.Optional(names.listOfMax(names.keyId, MAKERS_MAX)),
  lastUsedAtMs: Type.Optional(names.instantMs()),
  limits: Type.Optional(KeyLimits),
  /** The key holds while it lives. Who lets the key in looks after it. */
  sandbox: Type.Optional(names.sandboxId),
});
export type KeyRecord = Static<typeof KeyRecord>;

/** Where the record of a key would be if a later secret were its first one: leads to it. */
const KeyAlias = names.record('KeyAlias', { format: Type.Literal(1), aliasOf: names.keyId });

export function encodeRecord(record: KeyRecord): Uint8Array {
  return Buffer.from(JSON.stringify(record));
}

export const encodeAlias = (keyId: string): Uint8Array =>
  Buffer.from(JSON.stringify({ format: 1, aliasOf: keyId }));

/** Throws `data-loss`: a record that is none lets nobody in. */
export function decodeRecord(value: Uint8Array): KeyRecord {
  const record = decodeEntry(value);
  if (typeof record !== 'string') return record;
  throw new DsecError('data-loss', 'the record of an API key leads to another one');
}

/** A record, or the id of the key that has it. */
export function decodeEntry(value: Uint8Array): KeyRecord | string {
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(value).toString('utf8'));
  } catch (cause) {
    throw new DsecError('data-loss', 'the record of an API key is not JSON', { cause });
  }
  if (isValid(KeyRecord, parsed)) return parsed;
  if (isValid(KeyAlias, parsed)) return parsed.aliasOf;
  throw new DsecError('data-loss', 'the record of an API key is damaged');
}

/** Without its hashes and its makers. */
export function shownKey({
  format: _format,
  hash: _hash,
  previous: _previous,
  makers: _makers,
  ...key
}: KeyRecord): Key {
  return key;
}
