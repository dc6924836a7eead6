import type { AuditPage, QueryOf, RouteOf } from '@dsec/protocol';
import type { ProjectId } from '@dsec/std';
import { listPage } from '../http/sandbox-list.ts';
import type { SandboxEntry } from '../sandboxes.ts';
import type { AuditLog } from './audit-log.ts';

/** Of the sandboxes of a project that are listed, those that tried something. */
export function auditPage(
  audit: Pick<AuditLog, 'find'>,
  entries: Iterable<SandboxEntry>,
  { sandbox, ...query }: QueryOf<RouteOf<'getAudit'>>,
  project: ProjectId,
): AuditPage {
  const concerned: SandboxEntry[] = [];
  for (const entry of entries) {
    const isWanted = sandbox === undefined || entry.id === sandbox;
    if (isWanted && audit.find(entry.id) !== undefined) concerned.push(entry);
  }
  const { entries: page, cursor } = listPage(concerned, query, project);
  const records = page.flatMap(({ id, createdAtMs, principal, job }) => {
    const found = audit.find(id);
    if (found === undefined) return [];
    const about = { sandbox: id, createdAtMs: Math.floor(createdAtMs), principal };
    return [{ ...about, ...(job === undefined ? {} : { job }), ...found }];
  });
  return { records, ...(cursor === undefined ? {} : { cursor }) };
}
