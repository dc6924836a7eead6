/**
 * What a key with limits may do: an agent inside a sandbox has it. It makes sandboxes of its own, within its
 * limits, and reaches those and nothing else. Everything that is not named here is refused.
 */
import type { Identity } from '@dsec/iam';
import type { KeyLimits, OperationClass, Route, SandboxCreate } from '@dsec/protocol';
import { type Clock, DsecError } from '@dsec/std';

/** Of the scopes of a key with limits. */
export const CONFINED_SCOPES: readonly OperationClass[] = [
  ...(['sandboxes:read', 'sandboxes:write', 'exec', 'files:read', 'files:write', 'ports'] as const),
];

/** Beside what happens in a sandbox. What is not among them could lengthen, widen or copy one. */
const OPERATIONS: ReadonlySet<string> = new Set([
  ...['createSandbox', 'listSandboxes', 'getSandbox', 'stopSandbox', 'pauseSandbox'],
  ...['resumeSandbox', 'packDiff'],
]);
const INSIDE: ReadonlySet<string> = new Set(['exec', 'files:read', 'files:write', 'ports']);

/** Throws `permission-denied`. */
export function checkOperation(operation: string, { operationClass, params }: Route): void {
  const isInside = INSIDE.has(operationClass) && Object.hasOwn(params.properties, 'sandboxId');
  if (isInside || OPERATIONS.has(operation)) return;
  throw new DsecError('permission-denied', 'a key with limits is for sandboxes of its own alone', {
    details: { operation },
  });
}

/** Fields of a create that an agent may set. Network, policy, isolation and backend are whose job it is. */
const FIELDS: ReadonlySet<string> = new Set([
  ...['environment', 'layers', 'limits', 'env', 'user', 'cwd', 'labels', 'job', 'ttl', 'waitFor'],
  ...['requireProtections', 'watchPaths'],
]);
const TTL_LEAST_MS = 1000;

/**
 * What is asked for with a key, within its limits: `permission-denied` for a field that it may not set,
 * `quota-exceeded` for more than it may have. What is not said is as much as it may have, or as is usual.
 */
export function confineSpec(
  body: SandboxCreate,
  { limits: most }: Pick<Identity, 'limits'>,
  lifetimeMs?: number,
): SandboxCreate {
  if (most === undefined) return body;
  const field = Object.keys(body).find((name) => !FIELDS.has(name));
  if (field !== undefined) {
    throw new DsecError('permission-denied', `a key with limits sets no ${field}`, {
      details: { field },
    });
  }
  const { limits = {}, ttl = {} } = body;
  return {
    ...body,
    limits: {
      ...limits,
      ...within(limits, most, 'cpuMillicores'),
      ...within(limits, most, 'memoryBytes'),
    },
    ttl: { ...ttl, ...(lifetimeMs === undefined ? {} : { lifetimeMs }) },
  };
}

/**
 * How long a sandbox of a key with limits may be there: not longer than the key, from now on. It stands in
 * the record of the request, since a repetition has to ask for the same.
 */
export function lifetimeOf(
  { limits, expiresAtMs = 0 }: Identity,
  { ttl }: SandboxCreate,
  clock: Clock,
): { lifetimeMs?: number } {
  if (limits === undefined) return {};
  const leftMs = Math.floor(expiresAtMs - clock.wallMs());
  if (leftMs >= TTL_LEAST_MS) return { lifetimeMs: Math.min(ttl?.lifetimeMs ?? leftMs, leftMs) };
  throw new DsecError('quota-exceeded', 'the time of this key is up', {
    details: { limit: 'lifetimeMs' },
  });
}

function within<Name extends 'cpuMillicores' | 'memoryBytes'>(
  limits: NonNullable<SandboxCreate['limits']>,
  most: KeyLimits,
  name: Name,
): Partial<Record<Name, number>> {
  const max = most[name];
  const asked = limits[name];
  if (max === undefined) return {};
  if (asked !== undefined && asked > max) {
    throw new DsecError('quota-exceeded', `this key gives a sandbox at most ${max} ${name}`, {
      details: { limit: name, max },
    });
  }
  return { [name]: asked ?? max } as Partial<Record<Name, number>>;
}
