import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectPlain } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterEach, expect, it, onTestFinished, vi } from 'vitest';
import { connectWebSocket, createHttpClient, namesOfCertificate } from '../src/index.ts';
import { ONE, TWO } from './support/certificates.ts';
import { startServer, stopAll } from './support/test-server.ts';

afterEach(stopAll);

async function startTls() {
  const directory = mkdtempSync(join(tmpdir(), 'dsec-tls-'));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const certFile = join(directory, 'cert.pem');
  const keyFile = join(directory, 'key.pem');
  const write = ({ cert, key }: typeof ONE) => {
    writeFileSync(certFile, cert);
    writeFileSync(keyFile, key);
  };
  write(ONE);
  const onFault = vi.fn();
  const tls = { certFile, keyFile, onFault, everyMs: 20 };
  const { port } = await startServer(
    {
      show: async () => ({ text: 'hello' }),
      async socket(_, __, channel) {
        await channel.send('open');
      },
    },
    { tls },
  );
  const baseUrl = `https://localhost:${port}`;
  const read = async (ca?: string) => {
    const client = createHttpClient({
      ...{ baseUrl, ...(ca === undefined ? {} : { ca }) },
      retries: { attemptsMax: 1, firstDelayMs: 1, delayMsMax: 1 },
    });
    try {
      const { body } = await client.read({
        ...{ method: 'GET', target: '/v1/things/abc', isIdempotent: true },
      });
      return JSON.parse(body.toString()).text;
    } catch (thrown) {
      return (thrown as { code: string }).code;
    } finally {
      await client.close();
    }
  };
  return { port, baseUrl, certFile, read, write, onFault };
}

it('serves those who know the certificate, WebSockets too, and nobody without TLS', async () => {
  const { port, baseUrl, certFile, read } = await startTls();
  expect(await read(ONE.cert)).toBe('hello');
  expect(await read(TWO.cert)).toBe('unavailable');
  expect(await read()).toBe('unavailable');
  const channel = await connectWebSocket({
    ...{ baseUrl, ca: ONE.cert, target: '/v1/things/abc/socket' },
  });
  expect(await channel.receive()).toBe('open');
  await channel.close();
  const plain = connectPlain(port, '127.0.0.1');
  plain.write('GET /v1/things/abc HTTP/1.1\r\nhost: localhost\r\n\r\n');
  const told: Buffer[] = [];
  for await (const piece of plain.on('error', () => undefined)) told.push(piece as Buffer);
  expect(Buffer.concat(told).toString('latin1')).not.toContain('HTTP/1.1');
  expect(namesOfCertificate(certFile)).toEqual(['localhost', 'one.example', '127.0.0.1']);
});

it('speaks no version that is older than 1.2', async () => {
  const { port } = await startTls();
  const version = (maxVersion: 'TLSv1.1' | 'TLSv1.2' | 'TLSv1.3') =>
    new Promise((resolve) => {
      // Otherwise this side would refuse the old ones.
      const old = { minVersion: 'TLSv1', ciphers: 'DEFAULT@SECLEVEL=0' } as const;
      const socket = connect({ port, host: '127.0.0.1', ca: ONE.cert, ...old, maxVersion });
      socket.once('secureConnect', () => resolve(socket.getProtocol()));
      socket.once('error', () => resolve('refused'));
      onTestFinished(() => void socket.destroy());
    });
  expect(await version('TLSv1.1')).toBe('refused');
  expect(await version('TLSv1.2')).toBe('TLSv1.2');
  expect(await version('TLSv1.3')).toBe('TLSv1.3');
});

it('takes a renewed certificate, and goes on with the old one when the new cannot be used', async () => {
  const { read, write, onFault } = await startTls();
  write(TWO);
  await vi.waitFor(async () => expect(await read(TWO.cert)).toBe('hello'), 5000);
  write({ cert: ONE.cert, key: TWO.key });
  await vi.waitFor(() => expect(onFault).toHaveBeenCalled(), 5000);
  expect(onFault.mock.lastCall?.[0]).toMatchObject({ code: 'invalid-argument' });
  expect(await read(TWO.cert)).toBe('hello');
});
