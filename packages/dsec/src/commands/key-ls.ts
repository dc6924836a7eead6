import type { Key } from '@dsec/protocol';
import { withClient } from '../client/connect.ts';
import { showTime } from '../client/table-values.ts';
import type { Invocation } from '../command-line/invocation.ts';
import { printJson, renderTable } from '../output.ts';

const HEAD = ['KEY', 'NAME', 'OWNER', 'STATE', 'LAST USED', 'SCOPES'];

export async function run({ json, settings }: Invocation): Promise<void> {
  await withClient(settings, async (client) => {
    const keys: Key[] = [];
    for await (const key of client.keys.list()) keys.push(key);
    if (json) return printJson({ keys });
    process.stdout.write(`${renderTable(HEAD, keys.map(rowOf))}\n`);
  });
}

function rowOf(key: Key): string[] {
  const { id, name, project, principal, lastUsedAtMs, scopes } = key;
  return [
    id,
    name,
    `${project}/${principal}`,
    stateOf(key),
    showTime(lastUsedAtMs),
    scopes.join(' '),
  ];
}

function stateOf({ revokedAtMs, expiresAtMs }: Key): string {
  if (revokedAtMs !== undefined) return 'revoked';
  if (expiresAtMs === undefined) return 'valid';
  return expiresAtMs <= Date.now() ? 'expired' : `valid until ${showTime(expiresAtMs)}`;
}
