import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type EdgeId, parseEdgeId, type Random, systemRandom } from '@dsec/std';
import { type Settings, settingOf } from '../command-line/settings.ts';
import { defaultStateRoot } from '../config.ts';

const RANDOM_BYTES = 4;

/**
 * The id of the edge of a state directory: what was said, else the one it got the first time. What an edge
 * has in the kernel bears its id, and it removes what bears its id and is not its own; so that two state
 * directories of one machine leave each other alone, only the usual one has the usual id.
 */
export function edgeNameOf(
  stateRoot: string,
  settings: Settings,
  random: Random = systemRandom,
): EdgeId {
  const said = settingOf(settings, 'edgeId');
  if (settings.edgeId?.source !== 'default') return parseEdgeId(said);
  const file = join(stateRoot, 'edge-id');
  if (existsSync(file)) return parseEdgeId(readFileSync(file, 'utf8').trim());
  const name = stateRoot === defaultStateRoot() ? said : `l${hexOf(random.bytes(RANDOM_BYTES))}`;
  writeFileSync(file, `${name}\n`, { mode: 0o600 });
  return parseEdgeId(name);
}

const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
