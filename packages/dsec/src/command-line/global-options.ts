import type { OptionRow } from './table.ts';

/** Before or after every command. */
export const GLOBAL_OPTIONS: readonly OptionRow[] = [
  { flags: '--state <directory>', about: 'where DSec keeps its state', setting: 'state' },
  { flags: '--config <file>', about: 'the configuration file', setting: 'config' },
  { flags: '--json', about: 'output for programs: JSON on standard output' },
];
