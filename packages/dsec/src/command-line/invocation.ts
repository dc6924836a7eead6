import type { StatePaths } from '../config.ts';
import type { Settings } from './settings.ts';
import type { CommandShape } from './table.ts';

/** Values of options by their long names in camelCase. */
export type Flags = Readonly<Record<string, string | boolean | readonly string[] | undefined>>;

/** One call of a command. */
export interface Invocation {
  /** The arguments as they were given; those of a passed command without the `--` in front. */
  readonly args: readonly string[];
  readonly flags: Flags;
  /** Output for programs. */
  readonly json: boolean;
  readonly settings: Settings;
  readonly paths: StatePaths;
  readonly version: string;
  /** Every command there is. */
  readonly table: readonly CommandShape[];
}

/** The value of an option that takes one. */
export function textFlag(flags: Flags, name: string): string | undefined {
  const value = flags[name];
  return typeof value === 'string' ? value : undefined;
}

/** The values of an option that may be repeated. */
export function listFlag(flags: Flags, name: string): readonly string[] {
  const value = flags[name];
  return Array.isArray(value) ? value : [];
}
