import { SANDBOX_ID_COUNT, SANDBOX_ID_FIRST, type SpawnFields } from '@dsec/protocol';

/** What the launcher can hold, and far below the end of the ids. */
const SLOTS_MAX = 32_768;
/** The last id of a range is that of PID 1; all others belong to sessions (THREATS B4). */
const SESSION_IDS = SANDBOX_ID_COUNT - 1;

/** The host's first id of a slot: that of root in its sessions. */
export const rangeBase = (slot: number): number => SANDBOX_ID_FIRST + slot * SANDBOX_ID_COUNT;

/** The host's last id that sessions of a slot can have. */
export const rangeLast = (slot: number): number => rangeBase(slot) + SESSION_IDS - 1;

/** Both user namespaces of a sandbox, and PID 1 in them. */
export function identityOf(
  slot: number,
): Pick<SpawnFields, 'idMaps' | 'sessionIdMaps' | 'uid' | 'gid' | 'argv'> {
  const base = rangeBase(slot);
  return {
    idMaps: [
      { inside: 0, outside: base + SESSION_IDS, count: 1 },
      { inside: 1, outside: base, count: SESSION_IDS },
    ],
    sessionIdMaps: [{ inside: 0, outside: 1, count: SESSION_IDS }],
    uid: 0,
    gid: 0,
    argv: ['aether', '--session-ids', `0:1:${SESSION_IDS}`].map((text) => Buffer.from(text)),
  };
}

/**
 * How many slots there are below the first that shares an id with a range given to somebody else.
 *
 * @param subordinate The text of /etc/subuid or /etc/subgid: `name:first:count` on each line.
 */
export function slotsBelow(subordinate: string): number {
  const firstTaken = subordinate.split('\n').map((line) => {
    const [, first, count] = /^[^:]+:(\d+):(\d+)$/.exec(line.trim()) ?? [];
    if (first === undefined || Number(first) + Number(count) <= SANDBOX_ID_FIRST) return SLOTS_MAX;
    const slot = Math.floor((Number(first) - SANDBOX_ID_FIRST) / SANDBOX_ID_COUNT);
    return Math.max(0, slot);
  });
  return Math.min(SLOTS_MAX, ...firstTaken);
}
