/**
 * An agent in a real sandbox that calls the API: by a rule for the service `dsec`, through the proxies of its
 * node, with a key of its own.
 */
import { ROUTES } from '@dsec/protocol';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type Caller,
  createOne,
  type Fleet,
  LAYERS,
  openFleet,
} from '../integration/apiserver-world.ts';
import { get, type NetworkWorld, openNetworkWorld } from './network-world.ts';
import type { Box } from './security-world.ts';

const isRoot = process.getuid?.() === 0;
const DSEC = 'dsec.dsec-tests.net';
const ADDRESS = '127.77.0.115';
const RULES = [{ kind: 'service', target: 'dsec' }] as const;
const SCOPES = ['sandboxes:read', 'sandboxes:write', 'exec'] as const;

describe.skipIf(!isRoot)('115 agent-caller (needs root)', () => {
  let fleet: Fleet;
  let trainer: Caller;
  let network: NetworkWorld;
  let home: string;
  let secret: string;

  beforeAll(async () => {
    // The server that the agent calls. Its sandboxes are simulated; the agent's own is not.
    fleet = await openFleet({
      ...{ listen: { host: ADDRESS, port: 80 }, allowedHosts: [DSEC, ADDRESS] },
    });
    trainer = await fleet.callerOf('lab');
    home = (await createOne(trainer)).id;
    const body = { name: 'a', scopes: [...SCOPES], limits: { sandboxesMax: 1 }, sandbox: home };
    ({ secret = '' } = await trainer.call(ROUTES.createKey, { body }));
    const mirror = { names: [DSEC], ports: [80], addresses: [ADDRESS] };
    network = await openNetworkWorld({
      services: { dsec: { names: [DSEC], ports: [80], mirror } },
    });
  }, 120_000);
  afterAll(async () => {
    expect((await network?.close()) ?? []).toEqual([]);
    await fleet?.close();
  });

  /** A request as a program of the sandbox sends it. */
  async function ask(box: Box, line: string, key: string, body?: object): Promise<string> {
    const text = body === undefined ? '' : JSON.stringify(body);
    const head = [
      ...[`${line} HTTP/1.1`, `Host: ${DSEC}`, `Authorization: Bearer ${key}`, 'Connection: close'],
      ...(body === undefined ? [] : ['Content-Type: application/json']),
      `Content-Length: ${text.length}`,
    ];
    const request = `${head.join('\\r\\n')}\\r\\n\\r\\n${text.replaceAll('"', '\\"')}`;
    const script = `exec 3<>/dev/tcp/${DSEC}/80 && printf "${request}" >&3 && cat <&3`;
    const { stdout, stderr } = await box.run(['/bin/bash', '-c', script], { timeoutMs: 20_000 });
    return stdout + stderr;
  }

  it('makes a sandbox and runs a command in it; a sandbox without the rule hears nothing', async () => {
    const box = await network.make(RULES);
    try {
      const made = await ask(box, 'POST /v1/sandboxes', secret, { layers: LAYERS });
      expect(made).toMatch(/^HTTP\/1\.1 201 /);
      const id = /"id":"(sb-[a-z0-9-]+)"/.exec(made)?.[1];
      const command = { argv: ['echo', 'from-a-child'], waitMs: 10_000 };
      const ran = await ask(box, `POST /v1/sandboxes/${id}/execs`, secret, command);
      expect(ran).toContain('from-a-child');
      // More than it may have, and what is not its own.
      expect(await ask(box, 'POST /v1/sandboxes', secret, { layers: LAYERS })).toContain(' 429 ');
      expect(await ask(box, `GET /v1/sandboxes/${home}`, secret)).toContain(' 404 ');
      expect(await ask(box, 'GET /v1/keys', secret)).toContain(' 403 ');
      // Without a key it is as every stranger.
      expect(await ask(box, 'GET /v1/sandboxes', 'dsec_none')).toContain(' 401 ');
    } finally {
      await box.stop();
    }
    // The control of the rule: the same request, the same key, another rule.
    const other = await network.make();
    try {
      expect(await ask(other, 'GET /v1/sandboxes', secret)).not.toContain('HTTP/1.1 200');
      expect(await get(other, ADDRESS)).not.toContain('HTTP/1.1 ');
    } finally {
      await other.stop();
    }
  });

  it('is let in no more when its sandbox has ended', async () => {
    const box = await network.make(RULES);
    try {
      expect(await ask(box, 'GET /v1/sandboxes', secret)).toMatch(/^HTTP\/1\.1 200 /);
      await trainer.call(ROUTES.stopSandbox, { params: { sandboxId: home } });
      await fleet.apiservers[0]?.watcher.refresh();
      expect(await ask(box, 'GET /v1/sandboxes', secret)).toMatch(/^HTTP\/1\.1 401 /);
    } finally {
      await box.stop();
    }
  });
});
