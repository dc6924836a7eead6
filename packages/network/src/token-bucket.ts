/** Lets through `perSecond` on average and `burst` at once. */
export interface TokenBucketLimits {
  readonly perSecond: number;
  readonly burst: number;
}

export interface TokenBucket {
  /** Takes one token; `false` where there is none. */
  take(nowMs: number): boolean;
}

export function createTokenBucket({ perSecond, burst }: TokenBucketLimits): TokenBucket {
  let tokens = burst;
  let atMs: number | undefined;
  return {
    take(nowMs) {
      tokens = Math.min(burst, tokens + ((nowMs - (atMs ?? nowMs)) / 1000) * perSecond);
      atMs = nowMs;
      if (tokens < 1) return false;
      tokens -= 1;
      return true;
    },
  };
}
