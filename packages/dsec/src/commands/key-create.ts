import { SecretLostError } from '@dsec/libdsec';
import { KEY_SANDBOXES_MAX, OPERATION_CLASSES, type OperationClass } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import { withClient } from '../client/connect.ts';
import { parseCount, parseDurationMs } from '../client/quantities.ts';
import { showTime } from '../client/table-values.ts';
import { type Flags, type Invocation, listFlag, textFlag } from '../command-line/invocation.ts';
import { printJson, renderTable } from '../output.ts';

/** What an agent may have. */
const SCOPES_OF_AGENT: readonly OperationClass[] = [
  ...(['sandboxes:read', 'sandboxes:write', 'exec', 'files:read', 'files:write'] as const),
];
/** What a job needs. Who may make keys, look at nodes, see what grades or loosen a policy is said. */
const SCOPES_DEFAULT = OPERATION_CLASSES.filter(
  (scope) => !['keys', 'node', 'grading', 'policies:loosen'].includes(scope),
);

export async function run({ args: [name = ''], flags, json, settings }: Invocation): Promise<void> {
  const lifetime = textFlag(flags, 'expires');
  const [project, principal] = [textFlag(flags, 'project'), textFlag(flags, 'principal')];
  const isOfAgent = flags.sandbox !== undefined;
  const scopes = scopesOf(listFlag(flags, 'scope'), isOfAgent);
  const options = {
    ...(lifetime === undefined ? {} : { lifetimeMs: parseDurationMs(lifetime, '--expires') }),
    ...{ project, principal, ...confinedBy(flags) },
  };
  await withClient(settings, async (client) => {
    const created = await client.keys.create(name, scopes, options).catch(async (thrown) => {
      if (!(thrown instanceof SecretLostError)) throw thrown;
      await client.keys.revoke(String(thrown.details.keyId));
      const message = 'the answer with the secret was lost; that key is revoked: make another';
      throw new DsecError('secret-lost', message, { cause: thrown, details: thrown.details });
    });
    const { key, secret } = created;
    if (json) return printJson(created);
    const rows = [
      ['key', key.id],
      ['name', key.name],
      ['scopes', key.scopes.join(' ')],
      ['expires', key.expiresAtMs === undefined ? 'never' : showTime(key.expiresAtMs)],
      ['secret', secret],
    ];
    process.stdout.write(`${renderTable([], rows)}\n`);
    process.stderr.write('The secret is shown this once. Use it as DSEC_API_KEY.\n');
  });
}

/** Of an agent's key both are said, or neither. */
function confinedBy(flags: Flags) {
  const sandbox = textFlag(flags, 'sandbox');
  const most = textFlag(flags, 'sandboxesMax');
  if (sandbox === undefined && most === undefined) return {};
  if (sandbox === undefined || most === undefined) {
    throw new DsecError('invalid-argument', '--sandbox and --sandboxes-max go together');
  }
  const sandboxesMax = parseCount(most, '--sandboxes-max', 1, KEY_SANDBOXES_MAX);
  return { sandbox, limits: { sandboxesMax } };
}

function scopesOf(asked: readonly string[], isOfAgent: boolean): readonly OperationClass[] {
  if (asked.length === 0) return isOfAgent ? SCOPES_OF_AGENT : SCOPES_DEFAULT;
  return asked.map((text) => {
    const scope = OPERATION_CLASSES.find((known) => known === text);
    if (scope !== undefined) return scope;
    throw new DsecError('invalid-argument', `--scope is one of ${OPERATION_CLASSES.join(', ')}`);
  });
}
