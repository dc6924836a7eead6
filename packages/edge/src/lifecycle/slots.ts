import { DsecError, type SandboxId } from '@dsec/std';
import type { Journal } from '../journal/database.ts';
import type { SandboxTable } from '../journal/sandbox-table.ts';

/** Numbers that no two sandboxes hold at once (see `SandboxPlan.slot`). */
export interface Slots {
  /**
   * The one to take next; it is taken when a row with it is written before anything else happens. Throws
   * `overloaded` when none is free.
   */
  next(): number;
  /** Its row is written in the running transaction. */
  taken(slot: number): void;
  /** In the running transaction. */
  free(slot: number): void;
  /** After a start, which sandboxes hold which. */
  readonly held: ReadonlyMap<SandboxId, number>;
}

/** The last one freed is taken first: what a backend keeps for it is warm. */
export function openSlots(journal: Journal, table: SandboxTable, slotsMax: number): Slots {
  const held = new Map(table.readSlots().map(({ slot, id }) => [id, slot]));
  const used = new Set(held.values());
  const freed: number[] = [];
  let fresh = 0;
  return {
    held,
    next() {
      const last = freed.at(-1);
      if (last !== undefined) return last;
      while (used.has(fresh)) fresh += 1;
      if (fresh < slotsMax) return fresh;
      throw new DsecError('overloaded', `all ${slotsMax} slots of the node are held`, {
        details: { limit: 'slots', max: slotsMax },
      });
    },
    taken: (slot) =>
      journal.afterCommit(() => {
        used.add(slot);
        if (freed.at(-1) === slot) freed.pop();
      }),
    free(slot) {
      table.freeSlot(slot);
      journal.afterCommit(() => {
        used.delete(slot);
        if (slot < fresh) freed.push(slot);
      });
    },
  };
}
