import { createAddressPool, createNodeNetwork, overlappingRoutes } from '@dsec/edge';
import type { NetworkRule } from '@dsec/protocol';
import { systemClock } from '@dsec/std';
import { describe, expect, it } from 'vitest';

const network = createNodeNetwork({
  ...{ backend: {}, report: { slotsMax: 100 }, clock: systemClock },
  ...{ pool: '100.96.0.0/16', gateway: '169.254.77.1' },
  operator: {
    services: {
      mirror: { names: ['mirror.example.com'], ports: [8443] },
      injected: { names: ['api.example.com'], inject: { header: 'a', secret: 's' } },
      direct: { names: ['db.example.com'], dedicated: true },
    },
  },
});

describe('the network of a node', () => {
  it.each<NetworkRule>([
    { kind: 'service', target: 'pypi' },
    { kind: 'service', target: 'mirror' },
    { kind: 'domain', target: '*.example.org' },
    { kind: 'domain', target: 'example.org', ports: [8443] },
  ])('keeps rules for names: $target', (rule) => {
    network.check([rule]);
  });

  it.each<[string, NetworkRule]>([
    ['unsupported', { kind: 'address', target: '203.0.114.0/24' }],
    ['unsupported', { kind: 'service', target: 'injected' }],
    ['unsupported', { kind: 'service', target: 'direct' }],
    ['unsupported', { kind: 'domain', target: 'example.org', ports: [22] }],
    ['unsupported', { kind: 'domain', target: 'example.org', protocol: 'udp' }],
    ['not-found', { kind: 'service', target: 'nobody' }],
    ['invalid-argument', { kind: 'domain', target: '*.com' }],
  ])('refuses what it does not keep as %s: $target', (code, rule) => {
    const check = () => network.check([{ kind: 'service', target: 'pypi' }, rule]);
    expect(check).toThrow(expect.objectContaining({ code }));
    expect(check).toThrow(
      expect.objectContaining({ details: { field: expect.stringMatching(/^network/) } }),
    );
  });

  it('lets nobody through without a router', async () => {
    const key = { id: 'sb-s1-e1-aaaaaaaaaaaaaaaa', generation: 1 } as never;
    const sandbox = { key, address: '100.96.0.2', version: 1, rules: [] };
    await expect(network.add(sandbox)).rejects.toMatchObject({ code: 'unsupported' });
    await expect(network.update(sandbox)).rejects.toMatchObject({ code: 'not-found' });
    await network.remove(key);
  });
});

describe('addresses', () => {
  it('follow from slots', () => {
    expect(network.linkOf(0)).toEqual({ address: '100.96.0.2', gateway: '169.254.77.1' });
    expect(network.linkOf(254).address).toBe('100.96.1.0');
  });

  it.each(['100.96.0.0', '100.96.0.1/12', '300.0.0.0/8', '10.0.0.0/30', 'x'])(
    'come from no pool as %s',
    (range) => {
      expect(() => createAddressPool(range, 10)).toThrow(/pool|range/);
    },
  );

  it('are compared with the routes of the host', () => {
    const table = [
      'Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT',
      'eth0\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0',
      'eth0\t0000A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0',
      'ts0\t00004064\t00000000\t0001\t0\t0\t0\t0000C0FF\t0\t0\t0',
      '',
    ].join('\n');
    expect(overlappingRoutes('100.96.0.0/12', table)).toEqual(['100.64.0.0/10 (ts0)']);
    expect(overlappingRoutes('192.168.0.128/25', table)).toEqual(['192.168.0.0/24 (eth0)']);
    expect(overlappingRoutes('10.0.0.0/8', table)).toEqual([]);
  });
});
