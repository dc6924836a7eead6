import { describe, expect, it } from 'vitest';
import { type Connection, Sandbox } from '../src/index.ts';
import { type FakeHandlers, joined, sandboxInfo, serverOf } from './support/fake-server.ts';

async function connectTo(connectPort: FakeHandlers['connectPort']): Promise<Connection> {
  const server = await serverOf(connectPort === undefined ? {} : { connectPort });
  return new Sandbox(server, sandboxInfo()).connect(8080);
}

describe('a connection to a port', () => {
  it('carries bytes in both directions, each to its own end', async () => {
    const sizes: number[] = [];
    await using connection = await connectTo(async ({ params }, _, channel) => {
      expect(params.port).toBe(8080);
      for (;;) {
        const message = (await channel.receive()) as Uint8Array;
        if (message.byteLength === 0) break;
        sizes.push(message.byteLength);
      }
      await channel.send(Buffer.from('answer'));
      await channel.send(new Uint8Array(0));
      await channel.receive();
    });
    await connection.write('x'.repeat(150_000));
    await connection.end();
    expect((await joined(connection)).toString()).toBe('answer');
    expect(await connection.read()).toBeUndefined();
    expect(sizes).toEqual([65_536, 65_536, 18_928]);
  });

  it('ends when the other side closes, and fails with what broke it', async () => {
    const closed = await connectTo(async () => {});
    expect(await closed.read()).toBeUndefined();
    await closed.close();
    const broken = await connectTo(async () => {
      throw new Error('a fault');
    });
    await expect(broken.read()).rejects.toMatchObject({ name: 'InternalError' });
  });
});
