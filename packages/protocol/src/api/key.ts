import { DAY_MS } from '@dsec/std';
import Type, { type Static } from 'typebox';
import {
  cursor,
  durationMs,
  instantMs,
  integer,
  keyId,
  listOfMax,
  name,
  principalId,
  projectId,
  record,
  sandboxId,
} from '../names.ts';
import { OPERATION_CLASSES, OperationClass } from '../ticket.ts';

const scopes = listOfMax(OperationClass, OPERATION_CLASSES.length, 1);

/** Sandboxes of a key with limits, at a time. */
export const KEY_SANDBOXES_MAX = 1000;

export const KeyLimits = record(
  'KeyLimits',
  {
    sandboxesMax: integer(1, KEY_SANDBOXES_MAX, 'At a time.'),
    cpuMillicores: Type.Optional(integer(1, 1_024_000, 'Of each sandbox.')),
    memoryBytes: Type.Optional(integer(1, 2 ** 50, 'Of each sandbox.')),
  },
  'For an agent in a sandbox: the key makes sandboxes of its own and reaches those alone.',
);
export type KeyLimits = Static<typeof KeyLimits>;

const confinement = {
  limits: Type.Optional(KeyLimits),
  sandbox: Type.Optional(sandboxId),
};

export const KeyCreate = record('KeyCreate', {
  name,
  scopes,
  lifetimeMs: Type.Optional(durationMs()),
  principal: Type.Optional(principalId),
  project: Type.Optional(projectId),
  /** With `limits`: `sandbox` is the one that has the key, and with whose end the key ends. */
  ...confinement,
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
    ...confinement,
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
