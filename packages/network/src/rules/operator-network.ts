import { open } from 'node:fs/promises';
import { check } from '@dsec/protocol';
import { asDsecError, DsecError, MIB } from '@dsec/std';
import Type, { type Static } from 'typebox';
import { INDEX_FORMATS } from './compiled.ts';

const nameText = Type.String({ minLength: 1, maxLength: 253 });
const rangeText = Type.String({ minLength: 2, maxLength: 49 });
const names = Type.Array(nameText, { minItems: 1, maxItems: 64 });
const ports = Type.Optional(
  Type.Array(Type.Integer({ minimum: 1, maximum: 65_535 }), { minItems: 1, maxItems: 64 }),
);
const flag = (description: string) => Type.Optional(Type.Boolean({ description }));
const closed = (title: string, description?: string) => ({
  ...{ additionalProperties: false, title },
  ...(description === undefined ? {} : { description }),
});

export const ServiceMirror = Type.Object(
  {
    ...{ names, ports },
    addresses: Type.Optional(
      Type.Array(Type.String({ minLength: 2, maxLength: 45 }), { minItems: 1, maxItems: 16 }),
    ),
  },
  closed(
    'ServiceMirror',
    'Takes the place of the public names. Its `addresses` are used as they are, also private ones.',
  ),
);

/** What a service is on this node. A name may be a pattern, `*.suffix`. */
export const Service = Type.Object(
  {
    ...{ names, ports },
    mirror: Type.Optional(ServiceMirror),
    dedicated: flag('Its addresses serve nothing else and may be reached directly.'),
    index: Type.Optional(Type.Enum([...INDEX_FORMATS], { type: 'string' })),
    asOf: Type.Optional(
      Type.String({
        maxLength: 40,
        description: 'Releases from after this instant do not exist. Needs `index`.',
      }),
    ),
    deny: Type.Optional(
      Type.Array(Type.String({ minLength: 1, maxLength: 214 }), {
        ...{ maxItems: 256, description: 'Projects that do not exist. Needs `index`.' },
      }),
    ),
    terminate: flag('TLS ends at the proxy, so that each request is checked.'),
    inject: Type.Optional(
      Type.Object(
        {
          header: Type.String({ pattern: '^[a-z0-9-]{1,64}$' }),
          secret: Type.String({ pattern: '^[a-z0-9._-]{1,128}$' }),
        },
        closed('ServiceInjection', 'A header with a secret of the node, added by the proxy.'),
      ),
    ),
  },
  closed('Service'),
);
export type Service = Static<typeof Service>;

export const SERVICES_MAX = 256;
export const OperatorNetwork = Type.Object(
  {
    services: Type.Optional(
      Type.Record(Type.String({ pattern: '^[a-z0-9][a-z0-9._-]{0,63}$' }), Service, {
        ...{ additionalProperties: false, maxProperties: SERVICES_MAX },
      }),
    ),
    withoutDefaults: flag('Only `services`: none of the well-known ones.'),
    dedicated: Type.Optional(Type.Array(nameText, { maxItems: 256 })),
    terminated: Type.Optional(Type.Array(nameText, { maxItems: 256 })),
    denied: Type.Optional(Type.Array(nameText, { maxItems: 1024 })),
    deniedAddresses: Type.Optional(Type.Array(rangeText, { maxItems: 256 })),
    permittedAddresses: Type.Optional(Type.Array(rangeText, { maxItems: 64 })),
    nameServers: Type.Optional(
      Type.Array(Type.String({ minLength: 2, maxLength: 60 }), {
        ...{ minItems: 1, maxItems: 8 },
        description: 'Addresses, with a port where it is not 53. Absent: those of the host.',
      }),
    ),
    authoritiesFile: Type.Optional(
      Type.String({
        ...{ minLength: 1, maxLength: 4096 },
        description:
          'PEM of the authorities that vouch for names outside, instead of the public ones.',
      }),
    ),
  },
  closed('OperatorNetwork', "What an operator says about a node's network."),
);
export type OperatorNetwork = Static<typeof OperatorNetwork>;

const FILE_BYTES_MAX = MIB;

/**
 * Reads the operator's map, a JSON file of at most 1 MiB. Throws `not-found`, `too-large`, and
 * `invalid-argument` that names the field at fault.
 */
export async function loadOperatorNetwork(path: string): Promise<OperatorNetwork> {
  const text = await readBounded(path);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    throw new DsecError('invalid-argument', `${path} is not JSON`, { cause: thrown });
  }
  return check(OperatorNetwork, value, path);
}

async function readBounded(path: string): Promise<string> {
  try {
    await using file = await open(path, 'r');
    const buffer = Buffer.alloc(FILE_BYTES_MAX + 1);
    let length = 0;
    for (;;) {
      const { bytesRead } = await file.read(buffer, length, buffer.length - length);
      length += bytesRead;
      if (bytesRead === 0) break;
      if (length > FILE_BYTES_MAX) throw new DsecError('too-large', `${path} is over 1 MiB`);
    }
    return buffer.toString('utf8', 0, length);
  } catch (thrown) {
    throw asDsecError(thrown);
  }
}
