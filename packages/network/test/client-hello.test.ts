import { once } from 'node:events';
import { createServer } from 'node:net';
import { connect as tlsConnect } from 'node:tls';
import { isHelloRetry, parseClientHello, parseSecondHello } from '@dsec/network';
import { describe, expect, test } from 'vitest';
import { helloOf, recordsOf } from './client-hello-fixtures.ts';

const NAME = 'open.example.com';
const codeOf = (bytes: Buffer) => {
  try {
    parseClientHello(bytes);
  } catch (thrown) {
    return (thrown as { code?: string }).code;
  }
  return 'none';
};

describe('a ClientHello', () => {
  test('of a client of our days', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const options = { host: '127.0.0.1', port, servername: 'Open.Example.com' };
    const client = tlsConnect({ ...options, ALPNProtocols: ['h2', 'http/1.1'] });
    client.on('error', () => undefined);
    const [socket] = await once(server, 'connection');
    const [bytes] = await once(socket, 'data');
    client.destroy();
    socket.destroy();
    server.close();
    expect(parseClientHello(bytes)).toEqual({
      ...{ serverName: NAME, protocols: ['h2', 'http/1.1'], isEncrypted: false },
    });
  });

  test.each([1, 2, 5, 50, 100])('in records of %i bytes of it, in any pieces', (recordBytes) => {
    const whole = helloOf({ serverName: NAME, protocols: ['h2'] });
    const message = whole.subarray(5);
    const bytes = recordsOf(message, Math.max(recordBytes, Math.ceil(message.length / 64)));
    for (let end = 0; end < bytes.length; end += 1) {
      expect(parseClientHello(bytes.subarray(0, end))).toBeUndefined();
    }
    expect(parseClientHello(bytes)).toMatchObject({ serverName: NAME, protocols: ['h2'] });
  });

  test('meaningless extensions (GREASE), and early data behind it', () => {
    const grease = [0x0a0a, 0x1a1a, 0xfafa].map((type) => [type, Buffer.alloc(1)] as const);
    const hello = helloOf({ serverName: NAME, extensions: grease });
    const early = Buffer.concat([hello, Buffer.from([23, 3, 3, 0, 1, 9])]);
    expect(parseClientHello(early)).toMatchObject({ serverName: NAME, isEncrypted: false });
  });

  test.each([0xfe0d, 0xffce, 0xfd00])('extension %i hides a name', (type) => {
    const hello = helloOf({ serverName: NAME, extensions: [[type, Buffer.alloc(9)]] });
    expect(parseClientHello(hello)).toMatchObject({ isEncrypted: true });
  });

  test('without a name', () => {
    expect(parseClientHello(helloOf({}))).toMatchObject({ serverName: undefined });
  });

  const named = (serverName: string) => helloOf({ serverName });
  const record = helloOf({ serverName: NAME });
  const patched = (at: number, value: number) => {
    const bytes = Buffer.from(record);
    bytes[at] = value;
    return bytes;
  };
  const list = (...names: string[]) => {
    const entries = names.flatMap((name) => [
      Buffer.from([0, 0, name.length]),
      Buffer.from(name, 'latin1'),
    ]);
    const content = Buffer.concat(entries);
    const data = Buffer.concat([Buffer.from([0, content.length]), content]);
    return helloOf({ extensions: [[0, data]] });
  };
  test.each<[string, Buffer]>([
    ['an address', named('10.0.0.1')],
    ['a name with NUL', named('open.example.com\0.evil.com')],
    ['a name with a dot at its end', named('open.example.com.')],
    ['an empty name', named('')],
    ['an empty list', helloOf({ extensions: [[0, Buffer.from([0, 0])]] })],
    ['two names', list(NAME, 'evil.example.com')],
    ['the extension twice', helloOf({ serverName: NAME, extensions: [[0, Buffer.alloc(2)]] })],
    ['another record', patched(0, 23)],
    ['another version', patched(1, 2)],
    ['another message', patched(5, 2)],
    ['a length over the limit', patched(6, 1)],
    ['a shorter message in a longer record', patched(8, (record[8] ?? 0) - 1)],
    ['too many records', recordsOf(record.subarray(5), 1)],
    ['an empty record', Buffer.from([22, 3, 1, 0, 0])],
    ['a record over the limit', Buffer.from([22, 3, 1, 0xff, 0xff])],
  ])('%s is refused', (_, bytes) => {
    expect(codeOf(bytes)).toBe('protocol');
  });
});

describe('another ClientHello', () => {
  test('is found behind records of middleboxes and early data', () => {
    const before = Buffer.from([20, 3, 3, 0, 1, 1, 23, 3, 3, 0, 2, 7, 7]);
    const bytes = Buffer.concat([before, helloOf({ serverName: NAME })]);
    for (let end = 0; end < bytes.length; end += 1) {
      expect(parseSecondHello(bytes.subarray(0, end))).toBeUndefined();
    }
    expect(parseSecondHello(bytes)).toMatchObject({ serverName: NAME });
    const flood = Buffer.concat(
      Array(20).fill(Buffer.concat([Buffer.from([23, 3, 3, 0x40, 0]), Buffer.alloc(16_384)])),
    );
    expect(() => parseSecondHello(flood)).toThrow(/too much/);
  });

  test('is asked for by certain bytes alone', () => {
    expect(isHelloRetry(Buffer.from([22, 3, 3]))).toBeUndefined();
    expect(isHelloRetry(Buffer.from([21, 3, 3, 0, 2, 2, 40]))).toBe(false);
    expect(isHelloRetry(Buffer.alloc(60, 22))).toBe(false);
  });
});
