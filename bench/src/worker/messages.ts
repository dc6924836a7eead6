/** Between a benchmark and its workers: calls by name, over the channel that Node gives a child. */

// biome-ignore lint/suspicious/noExplicitAny: inputs differ from command to command
export type Commands = Readonly<Record<string, (input: any) => unknown>>;

export interface CallMessage {
  readonly id: number;
  readonly command: string;
  readonly input: unknown;
}

export type AnswerMessage =
  /** Of the id 0: it is open. */
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: string };

/** What a worker is, and its options as JSON: its two arguments. */
export type WorkerRole = 'edge' | 'peers' | 'sdk';

export const OPENED = 0;
