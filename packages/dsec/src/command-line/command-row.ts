import type { Invocation } from './invocation.ts';
import type { CommandShape } from './table.ts';

export interface CommandModule {
  run(invocation: Invocation): Promise<void>;
}

/** A command: what it looks like, and what does it. */
export interface CommandRow extends CommandShape {
  load(): Promise<CommandModule>;
}
