import { DsecError } from '@dsec/std';
import type { RuntimeRecord } from './sandbox-life.ts';

/** Reads what `create` gave the edge to keep. `data-loss` for anything else. */
export function readRecord(value: unknown): RuntimeRecord {
  const record = (value ?? {}) as Partial<RuntimeRecord>;
  const { pid, startTicks, upperDriver, oomKillsBefore = 0 } = record;
  const isSound =
    Number.isSafeInteger(pid) &&
    Number.isSafeInteger(startTicks) &&
    Number.isSafeInteger(oomKillsBefore) &&
    (upperDriver === 'tmpfs' || upperDriver === 'image' || upperDriver === 'btrfs');
  if (!isSound || pid === undefined || startTicks === undefined || upperDriver === undefined) {
    throw new DsecError('data-loss', 'the record of a sandbox is not one of this backend');
  }
  return { pid, startTicks, upperDriver, oomKillsBefore };
}
