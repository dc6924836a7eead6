import type { Random } from '@dsec/std';

/** What can go wrong in a simulated world. */
export const SIM_FAULTS = [
  /** A step of `create` fails. */
  'create-fails',
  /** A create that fails leaves what it has made: `leftover` in its error. */
  'create-leaves',
  /** The agent never says a word: `create` waits until it is given up. */
  'agent-silent',
  /** The agent ends soon after the sandbox has come up. */
  'agent-dies',
  /** `freeze-timeout`. */
  'freeze-stuck',
  /** Something does not end in time. The next `stop` may do better. */
  'stop-stuck',
  'dial-refused',
  /** What is sent on a new connection never arrives. */
  'link-half-open',
  /** A new connection is read slowly. */
  'link-slow',
  /** A new connection is lost after some bytes. */
  'link-cut',
  /** What the agent sends on a new connection is no frame after a while. */
  'frames-malformed',
  /** Nobody is told of an end before the next `recover`. */
  'exit-lost',
] as const;

export type SimFault = (typeof SIM_FAULTS)[number];

export interface SimFaults {
  /** Whether it happens now. */
  happens(fault: SimFault): boolean;
  /** Lets it happen the next times that it could. */
  arm(fault: SimFault, times?: number): void;
}

/** Chances from 0 to 1 of each, at each place where it could happen; drawn from the seed. */
export function createSimFaults(
  random: Random,
  chances: Partial<Record<SimFault, number>> = {},
): SimFaults {
  const armed = new Map<SimFault, number>();
  return {
    happens(fault) {
      const left = armed.get(fault) ?? 0;
      if (left > 0) {
        armed.set(fault, left - 1);
        return true;
      }
      const chance = chances[fault] ?? 0;
      return chance > 0 && random.int(1_000_000) < chance * 1_000_000;
    },
    arm: (fault, times = 1) => void armed.set(fault, times),
  };
}
