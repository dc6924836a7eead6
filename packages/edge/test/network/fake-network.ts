/** A network that keeps rules and cuts nothing, for tests of those who use one. */
import type { NetworkedSandbox, NodeNetwork } from '@dsec/edge';
import { DsecError } from '@dsec/std';

export interface FakeNetwork extends NodeNetwork {
  /** By the address of each sandbox. */
  readonly known: ReadonlyMap<string, NetworkedSandbox>;
  readonly did: string[];
  deny: Parameters<Parameters<NodeNetwork['onDenied']>[0]>[0] extends infer Denied
    ? (denied: Denied) => void
    : never;
}

/** Refuses the target `refused`. */
export function createFakeNetwork(packetFilter: 'enforced' | 'absent' = 'absent'): FakeNetwork {
  const known = new Map<string, NetworkedSandbox>();
  const did: string[] = [];
  const listeners: Parameters<NodeNetwork['onDenied']>[0][] = [];
  return {
    ...{ known, did },
    check(rules) {
      const at = rules.findIndex(({ target }) => target === 'refused');
      if (at < 0) return;
      const field = `network.${at}.target`;
      throw new DsecError('not-found', 'no such service', { details: { field } });
    },
    linkOf: (slot) => ({ address: `100.96.0.${slot + 2}`, gateway: '169.254.77.1' }),
    async add(sandbox) {
      did.push(`add ${sandbox.version}`);
      known.set(sandbox.address, sandbox);
      return [{ name: 'packet-filter', state: packetFilter }];
    },
    async update(sandbox) {
      did.push(`update ${sandbox.version}`);
      known.set(sandbox.address, sandbox);
    },
    async remove({ id }) {
      for (const [address, { key }] of known) if (key.id === id) known.delete(address);
    },
    recovered: () => undefined,
    onDenied: (listener) => void listeners.push(listener),
    untold: () => 0,
    deny(denied) {
      for (const listener of listeners) listener(denied);
    },
    close: async () => undefined,
  };
}
