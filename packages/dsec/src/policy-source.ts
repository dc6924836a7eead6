import { readFileSync, statSync } from 'node:fs';
import { probeSecurity } from '@dsec/linux';
import {
  POLICY_LIMITS,
  type PolicyDocument,
  type PolicyFacts,
  parsePolicyText,
} from '@dsec/policy';
import { DsecError } from '@dsec/std';

const PROFILE = 'profile:';

/** A policy that a person names: a file, `-` for standard input, or `profile:NAME`. */
export function readPolicy(source: string): PolicyDocument {
  if (source.startsWith(PROFILE)) return { version: 1, extends: source.slice(PROFILE.length) };
  const isInput = source === '-';
  const size = isInput ? 0 : statSync(source).size;
  if (size > POLICY_LIMITS.bytes) {
    throw new DsecError('too-large', `${source}: more than ${POLICY_LIMITS.bytes} bytes`);
  }
  return parsePolicyText(readFileSync(isInput ? 0 : source, 'utf8'), isInput ? 'policy' : source);
}

/** What containers of this machine are enforced with: AppArmor and rules of devices are not used yet. */
export const factsOfHost = (): PolicyFacts => ({
  ...probeSecurity(),
  hasAppArmor: false,
  deviceRules: 'none',
  hasSessionCapabilities: true,
  hasToolMount: false,
});
