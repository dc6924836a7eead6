import type { CommandRow } from './command-row.ts';
import { LAYER_COMMANDS } from './rows-layers.ts';
import { POLICY_COMMANDS } from './rows-policy.ts';
import {
  AUDIT_COMMANDS,
  ENVIRONMENT_COMMANDS,
  KEY_COMMANDS,
  SANDBOX_COMMANDS,
} from './rows-sandboxes.ts';
import { SERVER_COMMANDS } from './rows-server.ts';
import { TOOL_COMMANDS } from './rows-tools.ts';

/** What the commands of two words have in common. */
export const GROUPS: Readonly<Record<string, string>> = {
  layer: 'make, list and check layers, in the store of this machine',
  env: 'name lists of layers',
  key: 'make and revoke API keys',
  policy: 'check what sandboxes may do, and explain it',
};

/** Every command, in the order in which help and reference list them. */
export const COMMANDS: readonly CommandRow[] = [
  ...SANDBOX_COMMANDS,
  ...AUDIT_COMMANDS,
  ...ENVIRONMENT_COMMANDS,
  ...LAYER_COMMANDS,
  ...KEY_COMMANDS,
  ...POLICY_COMMANDS,
  ...SERVER_COMMANDS,
  ...TOOL_COMMANDS,
];
