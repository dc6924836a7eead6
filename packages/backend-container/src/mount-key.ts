/** Which sandboxes share a mount of a layer, and with it the pages of its files in memory (THREATS B1). */
import { createHash } from 'node:crypto';
import type { SandboxPlan } from '@dsec/backend';
import type { Digest } from '@dsec/std';
import { NODE_DOMAIN } from './protections.ts';

/** The id of a layer and, unless it is shared by the whole node, a mark of who shares its mount. */
export type LayerMountKey = string;

const MARK_DIGITS = 16;
const KEPT_MAX = 4096;
const marks = new Map<string, string>();

/** What grades is apart from everything, in its own domain too. */
export function mountKeyOf(
  { isolationDomain }: Pick<SandboxPlan, 'isolationDomain'>,
  { kind, layerId }: { readonly kind: string; readonly layerId: Digest },
): LayerMountKey {
  if (kind === 'grading') return `${layerId}.${markOf(`grading/${isolationDomain}`)}`;
  return isolationDomain === NODE_DOMAIN ? layerId : `${layerId}.${markOf(isolationDomain)}`;
}

/** The layer of a key. */
export const layerOfKey = (key: LayerMountKey): Digest => key.split('.')[0] as Digest;

function markOf(domain: string): string {
  const known = marks.get(domain);
  if (known !== undefined) return known;
  if (marks.size >= KEPT_MAX) marks.clear();
  const mark = createHash('sha256').update(domain).digest('hex').slice(0, MARK_DIGITS);
  marks.set(domain, mark);
  return mark;
}
