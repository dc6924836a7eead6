/**
 * Schemas of ids and names, by the grammar of `@dsec/std` (a test keeps the two equal), and other common
 * scalars.
 */
import { DAY_MS } from '@dsec/std';
import Type, { type TObject, type TProperties, type TSchema } from 'typebox';

const NAME = '[a-z0-9](\\.?[a-z0-9_-])*\\.?';
const LABEL_VALUE = '[A-Za-z0-9._/:@+-]{0,128}';

/** A closed object that becomes a component of the OpenAPI document under `title`. */
export const record = <P extends TProperties>(
  title: string,
  properties: P,
  description?: string,
): TObject<P> => {
  const described = description === undefined ? {} : { description };
  return Type.Object(properties, { additionalProperties: false, title, ...described });
};

/** A closed set of words that becomes a component under `title`. */
export const words = <const Values extends string[]>(title: string, values: readonly [...Values]) =>
  Type.Enum(values, { type: 'string', title });

/** A list of at most `itemsMax`. */
export const listOfMax = <T extends TSchema>(item: T, itemsMax: number, itemsMin = 0) =>
  Type.Array(item, { maxItems: itemsMax, ...(itemsMin === 0 ? {} : { minItems: itemsMin }) });

/** Any names of one form with values of one schema, at most `propertiesMax`. The pattern bounds the names. */
export const mapOf = <T extends TSchema>(
  namePattern: string,
  value: T,
  propertiesMax: number,
  description?: string,
) =>
  Type.Record(Type.String({ pattern: namePattern }), value, {
    additionalProperties: false,
    ...(description === undefined ? {} : { description }),
    maxProperties: propertiesMax,
  });

const text = (pattern: string, lengthMax: number, description: string) =>
  Type.String({ pattern: `^${pattern}$`, maxLength: lengthMax, description });

export const sandboxId = text(
  'sb-[a-z0-9]{1,8}-[a-z0-9]{1,11}-[a-z0-9]{16}',
  40,
  'Id of a sandbox: sb-<shard>-<edge>-<random>.',
);
export const edgeId = text('[a-z0-9]{1,11}', 11, 'Id of an edge.');
export const execId = text('ex-[a-z2-7]{16}', 19, 'Id of a command.');
export const sessionId = text('se-[a-z2-7]{16}', 19, 'Id of a session.');
export const snapshotId = text('sn-[a-z2-7]{16}', 19, 'Id of a snapshot.');
export const keyId = text('ke-[a-z2-7]{16}', 19, 'Id of an API key; not its secret.');
export const digest = text('sha256:[0-9a-f]{64}', 71, 'sha256: and 64 hex digits.');
export const name = text(
  NAME,
  128,
  'A name of a-z, 0-9, dot, underscore and hyphen, as my-project.1; first a-z or 0-9, no two dots in a row.',
);
export const projectId = name;
export const principalId = name;
export const jobId = name;
/** Of the caller, for a safe repetition of a request. */
export const idempotencyKey = text(
  '[A-Za-z0-9._:-]{1,128}',
  128,
  'Idempotency key: A-Z, a-z, 0-9, dot, underscore, colon, hyphen.',
);
export const labelValue = text(
  LABEL_VALUE,
  128,
  'Value of a label: A-Z, a-z, 0-9 and . _ / : @ + -, as team/blue.',
);
export const cursor = text('[A-Za-z0-9_-]{1,512}', 512, 'Opaque place in a listing or stream.');
/** One that holds a place in the stream of every edge of a fleet. */
export const eventCursor = text(
  '[A-Za-z0-9_-]{1,8192}',
  8192,
  'Opaque place in a stream of events.',
);

export const integer = (minimum: number, maximum: number, description?: string) =>
  Type.Integer({ minimum, maximum, ...(description === undefined ? {} : { description }) });

/** Any number, not only a whole one. */
export const real = (minimum: number, description?: string) =>
  Type.Number({
    minimum,
    maximum: Number.MAX_SAFE_INTEGER,
    ...(description === undefined ? {} : { description }),
  });

export const count = (description?: string) => integer(0, Number.MAX_SAFE_INTEGER, description);
/** A number of bytes, or an absolute offset in a stream. */
export const byteCount = count;
/** Milliseconds since the Unix epoch, by the wall clock of the one who reports. */
export const instantMs = (description?: string) => count(description);
export const durationMs = (maximum = 365 * DAY_MS, description?: string) =>
  integer(0, maximum, description);
/** Most time that a request may wait for something to happen. */
export const WAIT_MS_MAX = 60_000;
export const waitMs = Type.Optional(
  integer(0, WAIT_MS_MAX, 'Wait up to so many milliseconds for a change before answering.'),
);
