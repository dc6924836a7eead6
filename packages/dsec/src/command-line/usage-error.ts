import { DsecError } from '@dsec/std';

export const helpHint = (name: string) => `dsec ${name} --help shows its use`;

/** A command line that its command cannot do anything with. */
export class UsageError extends DsecError {
  /** What to do about it, for people. */
  readonly hint: string;

  constructor({ code, message, details, cause }: DsecError, name: string) {
    super(code, message, { details, cause });
    this.hint = helpHint(name);
  }
}

/** What was refused on this side, before any request, is about the words that were typed. */
export function withHint(thrown: unknown, name: string): unknown {
  if (!(thrown instanceof DsecError) || thrown.code !== 'invalid-argument') return thrown;
  const { requestId, details } = thrown as DsecError & { requestId?: string };
  const wasAsked = requestId !== undefined || details.about !== undefined;
  return wasAsked ? thrown : new UsageError(thrown, name);
}
