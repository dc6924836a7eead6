import { execFileSync } from 'node:child_process';
import { createHash, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createAuthorityMaterial, openAuthority } from '@dsec/network';
import { MIB } from '@dsec/std';
import { afterEach, describe, expect, test } from 'vitest';
import { helloOf } from './client-hello-fixtures.ts';
import {
  closeOf,
  echo,
  endAll,
  ends,
  plainHost,
  SANDBOX_AUTHORITY,
  secureClient,
  secureHost,
  startEgress,
} from './egress-fixtures.ts';

afterEach(endAll);

const OPEN = '93.184.216.34';
const rules = [{ kind: 'domain' as const, target: 'open.example.com' }];
const names = { 'open.example.com': OPEN };

const secureEcho = async (more: object = {}) => {
  const host = await secureHost('open.example.com', echo);
  return startEgress({ rules, names, hosts: { [`${OPEN}:443`]: host }, ...more });
};

describe('TLS that is passed on', () => {
  test('reaches the host with the host’s own certificate, and is counted', async () => {
    const egress = await secureEcho();
    const client = await secureClient(egress.tls, { servername: 'open.example.com' });
    expect(client.getPeerX509Certificate()?.subject).toBe('CN=open.example.com');
    client.write('hello');
    expect(String((await once(client, 'data'))[0])).toBe('hello');
    // Once for the proof, once for the connection.
    expect(egress.dialed).toEqual([`${OPEN}:443`, `${OPEN}:443`]);
    await secureClient(egress.tls, { servername: 'open.example.com' });
    expect(egress.dialed).toHaveLength(3);
    const counters = egress.server.counters('sb-127.0.0.1');
    expect(counters).toMatchObject({ connections: 2, refused: 0 });
    expect(counters.bytesDown).toBeGreaterThan(500);
    expect(egress.denied).toEqual([]);
  });

  test('much of it, whole; a reader that stops stops the writer', async () => {
    const egress = await secureEcho();
    const client = await secureClient(egress.tls, { servername: 'open.example.com' });
    const sent = Buffer.alloc(24 * MIB, 'dsec');
    client.end(sent);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(egress.server.counters('sb-127.0.0.1').bytesUp).toBeLessThan(sent.length);
    const digest = createHash('sha256');
    for await (const chunk of client) digest.update(chunk);
    expect(digest.digest('hex')).toBe(createHash('sha256').update(sent).digest('hex'));
  });

  test.each([
    ['another name', 'evil.example.com', 'name'],
    ['a name below', 'a.open.example.com', 'name'],
  ])('%s is denied in the words of TLS, and nobody is asked', async (_, servername, reason) => {
    const egress = await secureEcho();
    const client = secureClient(egress.tls, { servername });
    await expect(client).rejects.toMatchObject({ code: 'ERR_SSL_TLSV1_ALERT_ACCESS_DENIED' });
    expect(egress.denied).toMatchObject([{ reason, name: servername, port: 443, at: 'egress' }]);
    expect(egress.dialed).toEqual([]);
  });

  test('without a name, and on a port that no rule opens', async () => {
    const egress = await secureEcho();
    await expect(secureClient(egress.tls, {})).rejects.toMatchObject({
      code: 'ERR_SSL_TLSV1_ALERT_ACCESS_DENIED',
    });
    await expect(
      secureClient(egress.other, { servername: 'open.example.com' }),
    ).rejects.toMatchObject({ code: 'ERR_SSL_TLSV1_ALERT_ACCESS_DENIED' });
    expect(egress.denied).toMatchObject([
      { reason: 'name-mismatch', port: 443 },
      { reason: 'name', port: 8443, name: 'open.example.com' },
    ]);
  });

  test('an encrypted ClientHello is refused', async () => {
    const egress = await secureEcho();
    const hello = helloOf({
      serverName: 'open.example.com',
      extensions: [[0xfe0d, Buffer.alloc(40)]],
    });
    const socket = connect(egress.tls, '127.0.0.1');
    socket.write(hello);
    expect((await once(socket, 'data'))[0]).toEqual(Buffer.from([21, 3, 1, 0, 2, 2, 49]));
    expect(egress.denied).toMatchObject([{ reason: 'ech', name: 'open.example.com' }]);
    expect(egress.dialed).toEqual([]);
  });

  test('an address that does not prove the name gets nothing of the sandbox', async () => {
    const heard: Buffer[] = [];
    const host = await secureHost('other.example.com', (socket) =>
      socket.on('data', (d) => heard.push(d)),
    );
    const egress = await startEgress({ rules, names, hosts: { [`${OPEN}:443`]: host } });
    for (let i = 0; i < 3; i += 1) {
      await expect(
        secureClient(egress.tls, { servername: 'open.example.com' }),
      ).rejects.toMatchObject({ code: 'ERR_SSL_TLSV1_ALERT_ACCESS_DENIED' });
    }
    expect(egress.denied).toMatchObject(
      Array(3).fill({ reason: 'certificate', name: 'open.example.com' }),
    );
    expect(heard).toEqual([]);
    // The failed proof is remembered, so a sandbox cannot use the proxy to knock.
    expect(egress.dialed).toHaveLength(1);
  });

  test('a host without TLS proves nothing', async () => {
    const host = await plainHost((socket) => socket.end('HTTP/1.1 200 OK\r\n\r\n'));
    const egress = await startEgress({ rules, names, hosts: { [`${OPEN}:443`]: host } });
    await expect(secureClient(egress.tls, { servername: 'open.example.com' })).rejects.toThrow();
    expect(egress.dialed).toHaveLength(1);
  });

  test.each(['127.0.0.1', '10.0.0.1', '169.254.169.254', '::ffff:10.0.0.1'])(
    'a name that points to %s is not reached',
    async (address) => {
      const egress = await secureEcho({ names: { 'open.example.com': address } });
      await expect(secureClient(egress.tls, { servername: 'open.example.com' })).rejects.toThrow();
      expect(egress.denied).toMatchObject([{ reason: 'answer', name: 'open.example.com' }]);
      expect(egress.dialed).toEqual([]);
    },
  );

  test('the operator’s own address of a mirror may be private', async () => {
    const host = await secureHost('mirror.example.com', echo);
    const mirror = { names: ['mirror.example.com'], addresses: ['10.0.0.7'] };
    const egress = await startEgress({
      ...{ rules: [{ kind: 'service', target: 'pypi' }], names: {} },
      operator: { services: { pypi: { names: ['pypi.org'], mirror } } },
      hosts: { '10.0.0.7:443': host },
    });
    const client = await secureClient(egress.tls, { servername: 'mirror.example.com' });
    client.write('x');
    await once(client, 'data');
    await expect(secureClient(egress.tls, { servername: 'pypi.org' })).rejects.toThrow();
  });
});

describe('revocation and quotas', () => {
  test('open flows are cut at both ends, others stay', async () => {
    const atHost: Socket[] = [];
    const host = await secureHost('open.example.com', (socket) =>
      socket.once('data', () => atHost.push(socket)),
    );
    const kept = await secureHost('kept.example.com', echo);
    const egress = await startEgress({
      rules: [...rules, { kind: 'domain', target: 'kept.example.com' }],
      names: { ...names, 'kept.example.com': '93.184.216.35' },
      hosts: { [`${OPEN}:443`]: host, '93.184.216.35:443': kept },
    });
    const client = await secureClient(egress.tls, { servername: 'open.example.com' });
    const other = await secureClient(egress.tls, { servername: 'kept.example.com' });
    client.write('x');
    await expect.poll(() => atHost.length).toBe(1);
    const closed = [closeOf(client), closeOf(atHost[0] as Socket)];
    egress.update([{ kind: 'domain', target: 'kept.example.com' }]);
    expect(egress.server.revokeStale('sb-127.0.0.1', '127.0.0.1')).toBe(1);
    await Promise.all(closed);
    other.write('still');
    expect(String((await once(other, 'data'))[0])).toBe('still');
    expect(egress.server.revoke('sb-127.0.0.1', ({ name }) => name === 'kept.example.com')).toBe(1);
    await closeOf(other);
  });

  test('what is being opened is dropped as well', async () => {
    const egress = await secureEcho();
    egress.hold.lookups = true;
    const client = secureClient(egress.tls, { servername: 'open.example.com' });
    const failed = expect(client).rejects.toThrow();
    await expect.poll(() => egress.lookups.length).toBe(1);
    egress.update([]);
    expect(egress.server.revokeStale('sb-127.0.0.1', '127.0.0.1')).toBe(1);
    await failed;
    egress.lookups[0]?.();
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(egress.dialed).toEqual([]);
  });

  test('so many connections of one sandbox; its neighbour has its own', async () => {
    const egress = await secureEcho({ limits: { connectionsPerSandboxMax: 2 } });
    const at = (from: string) => secureClient(egress.tls, { servername: 'open.example.com', from });
    const first = await at('127.0.0.1');
    await at('127.0.0.1');
    await expect(at('127.0.0.1')).rejects.toThrow();
    await at('127.0.0.2');
    expect(egress.denied).toMatchObject([{ reason: 'quota', sandbox: 'sb-127.0.0.1' }]);
    first.destroy();
    await expect
      .poll(() =>
        at('127.0.0.1').then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
  });

  test('whoever is no sandbox is reset; whoever says nothing is ended', async () => {
    const egress = await secureEcho({ limits: { startTimeoutMs: 100 } });
    await expect(
      secureClient(egress.tls, { servername: 'open.example.com', from: '127.0.0.9' }),
    ).rejects.toThrow();
    const silent = connect(egress.tls, '127.0.0.1');
    ends.push(() => silent.destroy());
    const [error] = await once(silent, 'error');
    expect(error).toMatchObject({ code: 'ECONNRESET' });
  });

  test('a sandbox that goes away leaves nothing open outside', async () => {
    const atHost: Socket[] = [];
    const host = await secureHost('open.example.com', (socket) => {
      socket.once('data', () => atHost.push(socket));
    });
    const egress = await startEgress({ rules, names, hosts: { [`${OPEN}:443`]: host } });
    const client = await secureClient(egress.tls, { servername: 'open.example.com' });
    client.write('x');
    await expect.poll(() => atHost.length).toBe(1);
    const closed = closeOf(atHost[0] as Socket);
    client.destroy();
    await closed;
  });

  test('forgetting a sandbox cuts all of it', async () => {
    const egress = await secureEcho();
    const client = await secureClient(egress.tls, { servername: 'open.example.com' });
    egress.server.forget('sb-127.0.0.1');
    await closeOf(client);
    expect(egress.server.counters('sb-127.0.0.1').connections).toBe(0);
  });
});

describe('the authority of a sandbox', () => {
  test('vouches for names in a way that others verify', () => {
    const material = createAuthorityMaterial('DSec sb-1', Date.now());
    const authority = openAuthority(material);
    expect(new X509Certificate(material.certificatePem).ca).toBe(true);
    expect(authority.contextFor('a.example')).toBe(authority.contextFor('a.example'));
    const other = createAuthorityMaterial('DSec sb-1', Date.now());
    expect(() => openAuthority({ ...material, keyPem: other.keyPem })).toThrow(/key is not that/);
  });

  test('its certificates pass a strict check of openssl', () => {
    const directory = mkdtempSync(join(tmpdir(), 'dsec-ca-'));
    const path = join(directory, 'ca.pem');
    writeFileSync(path, SANDBOX_AUTHORITY.material.certificatePem);
    const output = execFileSync('openssl', ['verify', '-x509_strict', '-CAfile', path, path]);
    rmSync(directory, { recursive: true });
    expect(String(output)).toContain('OK');
  });
});

describe('a server that asks for another ClientHello', () => {
  test('gets it, for the same name', async () => {
    const host = await secureHost('open.example.com', echo, { ecdhCurve: 'secp384r1' });
    const egress = await startEgress({ rules, names, hosts: { [`${OPEN}:443`]: host } });
    const client = await secureClient(egress.tls, { servername: 'open.example.com' });
    client.write('hello');
    expect(String((await once(client, 'data'))[0])).toBe('hello');
    expect(client.getProtocol()).toBe('TLSv1.3');
  });

  test('does not get another name', async () => {
    const retry = Buffer.concat([
      ...[Buffer.from([22, 3, 3, 0, 40, 2, 0, 0, 36, 3, 3])],
      Buffer.from('cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c', 'hex'),
      Buffer.from([0, 0]),
    ]);
    const proven = await secureHost('open.example.com', echo);
    const heard: Buffer[] = [];
    const asking = await plainHost((socket) => {
      socket.write(retry);
      socket.on('data', (data) => heard.push(data));
    });
    const hosts = { [`${OPEN}:443`]: proven };
    const egress = await startEgress({ rules, names, hosts });
    await secureClient(egress.tls, { servername: 'open.example.com' });
    hosts[`${OPEN}:443`] = asking;
    const first = helloOf({ serverName: 'open.example.com' });
    for (const serverName of ['evil.example.com', undefined]) {
      heard.length = 0;
      const socket = connect(egress.tls, '127.0.0.1');
      ends.push(() => socket.destroy());
      socket.write(first);
      expect((await once(socket, 'data'))[0]).toEqual(retry);
      socket.write(Buffer.from([20, 3, 3, 0, 1, 1]));
      socket.write(helloOf(serverName === undefined ? {} : { serverName }));
      expect((await once(socket, 'data'))[0]).toEqual(Buffer.from([21, 3, 1, 0, 2, 2, 49]));
      expect(Buffer.concat(heard)).toEqual(first);
    }
    expect(egress.denied).toMatchObject(Array(2).fill({ reason: 'name-mismatch' }));
  });
});
