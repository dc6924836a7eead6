import { type Clock, systemClock } from '@dsec/std';
import { createRecentMap } from './recent-map.ts';
import type { NetworkDenial } from './seams.ts';
import { createTokenBucket, type TokenBucket, type TokenBucketLimits } from './token-bucket.ts';

export interface DenialReporterOptions {
  readonly onDenied: (denial: NetworkDenial) => void;
  readonly clock?: Clock | undefined;
  /** Events of one sandbox; what is over it is counted in the next event. */
  readonly perSandbox?: TokenBucketLimits | undefined;
  readonly sandboxesMax?: number | undefined;
}

export interface DenialReporter {
  report(denial: Omit<NetworkDenial, 'suppressed'>): void;
  /** Denials of a sandbox since the last that was passed on. */
  untold(sandbox: string): number;
}

interface Reported {
  readonly bucket: TokenBucket;
  suppressed: number;
}

/** Passes denials on, so many a second of one sandbox: an attack by one is no load on the others. */
export function createDenialReporter(options: DenialReporterOptions): DenialReporter {
  const { onDenied, clock = systemClock } = options;
  const { perSandbox = { perSecond: 10, burst: 50 }, sandboxesMax = 16_384 } = options;
  const sandboxes = createRecentMap<string, Reported>(sandboxesMax);
  return {
    report(denial) {
      let known = sandboxes.get(denial.sandbox);
      if (known === undefined) {
        known = { bucket: createTokenBucket(perSandbox), suppressed: 0 };
        sandboxes.set(denial.sandbox, known);
      }
      if (!known.bucket.take(clock.monotonicMs())) {
        known.suppressed += 1;
        return;
      }
      onDenied({ ...denial, suppressed: known.suppressed });
      known.suppressed = 0;
    },
    untold: (sandbox) => sandboxes.get(sandbox)?.suppressed ?? 0,
  };
}
