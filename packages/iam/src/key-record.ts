/** A key as it is stored, and as the API shows it. */
import { isValid, type Key, names, OPERATION_CLASSES, OperationClass } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import Type, { type Static } from 'typebox';

/** How far from its first key a key may be. Each maker is a read of the store for each request. */
export const MAKERS_MAX = 8;

const hash = Type.String({ pattern: '^[0-9a-f]{64}$', maxLength: 64 });

export const KeyRecord = names.record('KeyRecord', {
  format: Type.Literal(1),
  id: names.keyId,
  /** sha256 of the secret. */
  hash,
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
});
export type KeyRecord = Static<typeof KeyRecord>;

export function encodeRecord(record: KeyRecord): Uint8Array {
  return Buffer.from(JSON.stringify(record));
}

/** Throws `data-loss`: a record that is none lets nobody in. */
export function decodeRecord(value: Uint8Array): KeyRecord {
  let parsed: unknown;
  try {
    parsed = JSON.parse(Buffer.from(value).toString('utf8'));
  } catch (cause) {
    throw new DsecError('data-loss', 'the record of an API key is not JSON', { cause });
  }
  if (isValid(KeyRecord, parsed)) return parsed;
  throw new DsecError('data-loss', 'the record of an API key is damaged');
}

/** Without its hash and its makers. */
export function shownKey({
  format: _format,
  hash: _hash,
  makers: _makers,
  ...key
}: KeyRecord): Key {
  return key;
}
