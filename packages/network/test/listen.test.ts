import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { rawSyscall } from '@dsec/linux';
import { plainAddress, startDnsServer } from '@dsec/network';
import { expect, test } from 'vitest';

const F_DUPFD_CLOEXEC = 1030;

/** A descriptor of a socket that somebody else made, as a router hands it over. */
function handedOver(socket: object): number {
  const { fd } = (socket as { _handle: { fd: number } })._handle;
  return rawSyscall('fcntl', fd, F_DUPFD_CLOEXEC, 3);
}

test('servers take sockets that are bound and listen already', async () => {
  const tcp = createServer().listen(0, '127.0.0.1');
  const udp = createSocket('udp4').bind(0, '127.0.0.1');
  await Promise.all([once(tcp, 'listening'), once(udp, 'listening')]);
  const ports = [udp.address().port, (tcp.address() as { port: number }).port];
  const [udpFd, tcpFd] = [handedOver(udp), handedOver(tcp)];
  await Promise.all([
    new Promise((done) => tcp.close(done)),
    new Promise<void>((done) => udp.close(done)),
  ]);
  const sources: string[] = [];
  const server = await startDnsServer({
    answerer: {
      async answer(message, source) {
        sources.push(source);
        return Buffer.from(message);
      },
    },
    findSandbox: () => ({ id: 'sb-1', network: { version: 1, addresses: [], names: [] } }),
    udp: { fd: udpFd },
    tcp: { fd: tcpFd },
  });
  expect([server.udpPort, server.tcpPort]).toEqual(ports);
  const datagrams = createSocket('udp4');
  datagrams.send('hello', server.udpPort, '127.0.0.1');
  expect(String((await once(datagrams, 'message'))[0])).toBe('hello');
  const stream = connect(server.tcpPort, '127.0.0.1');
  stream.write(Buffer.from([0, 2, 104, 105]));
  expect(String((await once(stream, 'data'))[0])).toBe('\0\x02hi');
  expect(sources).toEqual(['127.0.0.1', '127.0.0.1']);
  datagrams.close();
  stream.destroy();
  await server.close();
});

test('an IPv4 address is written in one way', () => {
  expect(plainAddress('::ffff:100.96.0.2')).toBe('100.96.0.2');
  expect(plainAddress('100.96.0.2')).toBe('100.96.0.2');
  expect(plainAddress(undefined)).toBe('');
});
