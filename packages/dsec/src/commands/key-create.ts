import { SecretLostError } from '@dsec/libdsec';
import { OPERATION_CLASSES, type OperationClass } from '@dsec/protocol';
import { DsecError } from '@dsec/std';
import { withClient } from '../client/connect.ts';
import { parseDurationMs } from '../client/quantities.ts';
import { showTime } from '../client/table-values.ts';
import { type Invocation, listFlag, textFlag } from '../command-line/invocation.ts';
import { printJson, renderTable } from '../output.ts';

/** What a job needs. Who may make keys, look at nodes, see what grades or loosen a policy is said. */
const SCOPES_DEFAULT = OPERATION_CLASSES.filter(
  (scope) => !['keys', 'node', 'grading', 'policies:loosen'].includes(scope),
);

export async function run({ args: [name = ''], flags, json, settings }: Invocation): Promise<void> {
  const lifetime = textFlag(flags, 'expires');
  const [project, principal] = [textFlag(flags, 'project'), textFlag(flags, 'principal')];
  const scopes = scopesOf(listFlag(flags, 'scope'));
  const options = {
    ...(lifetime === undefined ? {} : { lifetimeMs: parseDurationMs(lifetime, '--expires') }),
    ...{ project, principal },
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

function scopesOf(asked: readonly string[]): readonly OperationClass[] {
  if (asked.length === 0) return SCOPES_DEFAULT;
  return asked.map((text) => {
    const scope = OPERATION_CLASSES.find((known) => known === text);
    if (scope !== undefined) return scope;
    throw new DsecError('invalid-argument', `--scope is one of ${OPERATION_CLASSES.join(', ')}`);
  });
}
