import Type, { type Static } from 'typebox';
import { integer, listOfMax, record, words } from '../names.ts';

export const NetworkRule = record(
  'NetworkRule',
  {
    kind: words('NetworkRuleKind', ['service', 'domain', 'address']),
    target: Type.String({
      minLength: 1,
      maxLength: 253,
      pattern: '^[A-Za-z0-9*._:/-]+$',
      description:
        'Name of a service, a domain (`*.` in front for all below), or an address range.',
    }),
    ports: Type.Optional(listOfMax(integer(1, 65_535), 64)),
    protocol: Type.Optional(words('NetworkProtocol', ['tcp', 'udp'])),
  },
  'One thing that a sandbox may reach; everything else is denied.',
);
export type NetworkRule = Static<typeof NetworkRule>;
