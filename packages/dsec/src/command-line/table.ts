/**
 * What the command line is, as data: the parser, the help, the completion scripts and
 * `docs/reference/cli.md` are made of these rows. What a command does is loaded when it is called, so that
 * a short command does not wait for the parts of a long one.
 */
import type { SettingKey } from './settings-table.ts';

export interface ArgumentRow {
  /** `<needed>`, `[optional]`, `<several...>`. */
  readonly syntax: string;
  readonly about: string;
  /** The words that it may be, for completion. */
  readonly words?: readonly string[];
  /** The same, asked of the server. */
  readonly names?: NamesAsked;
}

/** What completion asks the server for. */
export type NamesAsked = 'environments';

export interface OptionRow {
  /** As commander reads them: `-u, --user <name>`. */
  readonly flags: string;
  readonly about: string;
  /** Gives a value of the resolved configuration; its default and variable are in that table. */
  readonly setting?: SettingKey;
  readonly default?: string;
  /** May be given several times; the values come as a list, without any an empty one. */
  readonly repeatable?: true;
  /** The words that it takes, for completion. */
  readonly words?: readonly string[];
  /** The same, asked of the server. */
  readonly names?: NamesAsked;
}

export interface CommandShape {
  /** One word, or a group and a word: `layer import`. */
  readonly name: string;
  /** One clause in lower case, without a full stop. */
  readonly summary: string;
  readonly arguments?: readonly ArgumentRow[];
  readonly options?: readonly OptionRow[];
  /** The last argument is a command of somebody else, options included: see `pass-through.ts`. */
  readonly passThrough?: true;
  /** Whole lines as they are typed, without `dsec `. */
  readonly examples: readonly string[];
  /** What the summary leaves out, as sentences. */
  readonly details?: string;
}
