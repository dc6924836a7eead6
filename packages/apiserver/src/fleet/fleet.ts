import { DsecError, type EdgeId, parseSandboxId } from '@dsec/std';
import type { EdgeLink } from './edge-link.ts';

/** The edges that are configured. */
export interface Fleet {
  /** In the order of their ids. */
  readonly links: readonly EdgeLink[];
  /** Throws `not-found`. */
  link(edge: EdgeId): EdgeLink;
  /** The edge that a sandbox id names; an unknown one is the id of nothing: `not-found`. */
  linkOf(sandbox: string): EdgeLink;
  close(): Promise<void>;
}

export function createFleet(links: readonly EdgeLink[]): Fleet {
  const byId = new Map(links.map((link) => [link.edgeId, link]));
  if (byId.size !== links.length) {
    throw new DsecError('invalid-argument', 'two edges have the same id');
  }
  return {
    links: [...links].sort((a, b) => (a.edgeId < b.edgeId ? -1 : 1)),
    link(edge) {
      const link = byId.get(edge);
      if (link === undefined) throw new DsecError('not-found', 'there is no such edge');
      return link;
    },
    linkOf(sandbox) {
      const { shard, edge } = parseSandboxId(sandbox);
      const link = byId.get(edge);
      if (link?.shardId !== shard) throw new DsecError('not-found', 'there is no such sandbox');
      return link;
    },
    async close() {
      await Promise.all(links.map((link) => link.close()));
    },
  };
}
