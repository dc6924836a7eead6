import { LAYER_COMMANDS } from './rows-layers.ts';
import { SERVER_COMMANDS } from './rows-server.ts';
import type { CommandRow } from './table.ts';

/** What the commands of two words have in common. */
export const GROUPS: Readonly<Record<string, string>> = {
  layer: 'make, list and check layers',
};

/** Every command, in the order in which help and reference list them. */
export const COMMANDS: readonly CommandRow[] = [...SERVER_COMMANDS, ...LAYER_COMMANDS];
