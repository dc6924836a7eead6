import { DAY_MS } from '@dsec/std';
import Type, { type Static } from 'typebox';
import {
  cursor,
  durationMs,
  instantMs,
  keyId,
  listOfMax,
  name,
  principalId,
  projectId,
  record,
} from '../names.ts';
import { OPERATION_CLASSES, OperationClass } from '../ticket.ts';

const scopes = listOfMax(OperationClass, OPERATION_CLASSES.length, 1);

export const KeyCreate = record('KeyCreate', {
  name,
  scopes,
  lifetimeMs: Type.Optional(durationMs()),
  principal: Type.Optional(principalId),
  project: Type.Optional(projectId),
});

export const KeyRotate = record('KeyRotate', {
  graceMs: Type.Optional(
    durationMs(
      7 * DAY_MS,
      'How long the secrets before it are good yet: an hour unless it is said; 0: they end.',
    ),
  ),
});

export const Key = record(
  'Key',
  {
    id: keyId,
    name,
    project: projectId,
    principal: principalId,
    scopes,
    createdAtMs: instantMs(),
    expiresAtMs: Type.Optional(instantMs()),
    revokedAtMs: Type.Optional(instantMs()),
    lastUsedAtMs: Type.Optional(instantMs()),
  },
  'An API key without its secret, which is stored hashed.',
);
export type Key = Static<typeof Key>;

export const KeyCreated = record(
  'KeyCreated',
  {
    key: Key,
    secret: Type.Optional(Type.String({ pattern: '^dsec_[A-Za-z0-9_-]{43}$', maxLength: 48 })),
  },
  'The only time that the secret is told. A repetition of the request tells the key without it.',
);
export type KeyCreated = Static<typeof KeyCreated>;

export const KeyPage = record('KeyPage', {
  keys: listOfMax(Key, 1000),
  cursor: Type.Optional(cursor),
});
