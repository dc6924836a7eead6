import { asDsecError } from '@dsec/std';
import { fails, type Outcome, untried, works } from './facts.ts';

/** Turns a trial into its outcome: what it returns is the detail, what it throws the reason. */
export function attempt(trial: () => string): Outcome {
  try {
    return works(trial());
  } catch (thrown) {
    return asOutcome(thrown);
  }
}

/** A refusal says nothing about the host when the user is one whom everything is refused. */
export function asOutcome(thrown: unknown): Outcome {
  const { code, message } = asDsecError(thrown);
  const ordinary = process.geteuid?.() !== 0;
  return ordinary && code === 'permission-denied'
    ? untried(`needs root (${message})`)
    : fails(message);
}
