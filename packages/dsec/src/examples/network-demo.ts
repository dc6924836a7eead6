/** Two sandboxes, one with a rule for a mirror on this machine and one without: what each of them reaches. */
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { Client } from '@dsec/libdsec';
import { asDsecError } from '@dsec/std';

export interface ExampleMirror {
  /** The operator's map that names it. */
  readonly servicesFile: string;
  readonly port: number;
  close(): void;
}

export interface NetworkDemoOptions {
  readonly client: Client;
  readonly environment: string;
  readonly mirror: ExampleMirror;
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

const SERVICE = 'example-mirror';
const NAME = 'mirror.dsec.example';
const ADDRESS = '127.0.0.1';
const INDEX = '<a href="spans/">spans</a>\n';
const LIFETIME_S = 120;
const COMMAND_S = 60;

/** An index of packages in small. It has to be there before the edge reads its map. */
export async function startExampleMirror(stateRoot: string): Promise<ExampleMirror> {
  const server = createServer((_request, response) => void response.end(INDEX));
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(0, ADDRESS, resolve);
  });
  server.unref();
  const { port } = server.address() as AddressInfo;
  const mirror = { names: [NAME], ports: [port], addresses: [ADDRESS] };
  const services = { [SERVICE]: { names: [NAME], ports: [port], mirror } };
  const servicesFile = join(stateRoot, 'example-services.json');
  writeFileSync(servicesFile, `${JSON.stringify({ services }, undefined, 2)}\n`, { mode: 0o600 });
  return { servicesFile, port, close: () => void server.close() };
}

const PROGRAM = `
import sys, urllib.request
try:
    print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode().strip())
except OSError as error:
    print("not reached:", getattr(error, "reason", error))
`;

/** Whether each reached what it should, and nothing else; also where this node has no network to give. */
export async function showNetworks(options: NetworkDemoOptions): Promise<boolean> {
  const { client, environment, mirror, say, signal } = options;
  const url = (name: string) => `http://${name}:${mirror.port}/`;
  const reach = async (rules: boolean, name: string): Promise<string> => {
    const network = rules ? [{ kind: 'service' as const, target: SERVICE }] : undefined;
    await using sandbox = await client.create({
      ...{ environment, signal, ttl: { lifetimeMs: LIFETIME_S * 1000 } },
      ...(network === undefined ? {} : { network }),
    });
    const argv = ['python3', '-c', PROGRAM, url(name)];
    const { stdout } = await sandbox.exec(argv, { timeout: COMMAND_S, signal });
    return stdout.trim();
  };
  const tries = [
    { rules: true, name: NAME, isReached: true },
    { rules: true, name: 'example.org', isReached: false },
    { rules: false, name: NAME, isReached: false },
  ];
  let isRight = true;
  for (const { rules, name, isReached } of tries) {
    try {
      const said = await reach(rules, name);
      isRight &&= said.includes('href') === isReached;
      say(`  ${rules ? `with a rule for ${SERVICE}` : 'without a rule'}, ${name}: ${said}`);
    } catch (thrown) {
      const error = asDsecError(thrown);
      if (error.code !== 'unsupported') throw error;
      say(`  this machine gives sandboxes no network: ${error.message}`);
      return true;
    }
  }
  return isRight;
}
