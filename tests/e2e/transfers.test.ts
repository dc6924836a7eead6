/** Bytes in bulk: with constant memory, and over an apiserver that dies. */
import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Client, type OutputChunk, type Sandbox } from '@dsec/libdsec';
import { GIB, MIB } from '@dsec/std';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { type ServerWorld, startServerWorld } from './server-world.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const CLIENT = fileURLToPath(new URL('./transfer-client.mjs', import.meta.url));
const isLong = process.env.DSEC_TEST_LONG === '1';
const isRoot = process.getuid?.() === 0;
const FILE_BYTES = isLong ? 2 * GIB : 192 * MIB;
const MEMORY_BYTES_MAX = 256 * MIB;
/** The most output that an edge keeps. */
const OUTPUT_BYTES_MAX = GIB;

compileFirst(join(ROOT, 'packages/dsec'));

const run = promisify(execFile);

/** By a program of its own: the file is larger than a process should read. */
function digestOfFile(path: string): string {
  return execFileSync('sha256sum', [path], { encoding: 'utf8' }).slice(0, 64);
}

describe.skipIf(!isRoot)('a large file (needs root)', () => {
  let world: ServerWorld;

  beforeAll(async () => {
    world = await startServerWorld({ backend: 'container' });
  });
  afterAll(async () => {
    await world?.stop();
  });

  const limitMs = isLong ? 1_800_000 : 170_000;
  it('goes in, out and through a command with 256 MB', { timeout: limitMs }, async () => {
    const { url, api_key: apiKey, layer } = world.variables;
    await using client = new Client({ url, apiKey });
    const limits = { diskBytes: 3 * FILE_BYTES, memoryBytes: 256 * MIB };
    await using sandbox = await client.create({ layers: [layer], limits });
    const [source, target] = [join(world.state, 'source'), join(world.state, 'target')];
    execFileSync('sh', ['-c', `head -c ${FILE_BYTES} /dev/urandom >'${source}'`]);
    const wanted = digestOfFile(source);
    const args = ['--max-old-space-size=128', CLIENT, sandbox.id, source, target];
    const env = { ...process.env, DSEC_URL: url, DSEC_API_KEY: apiKey };
    const { stdout } = await run(process.execPath, args, { env });
    const told = JSON.parse(stdout);
    expect(told).toMatchObject({ streamed: wanted, sizeBytes: FILE_BYTES });
    expect(digestOfFile(target)).toBe(wanted);
    if (FILE_BYTES <= OUTPUT_BYTES_MAX) expect(told.printed).toBe(wanted);
    else expect(told.printedBytes).toBeGreaterThanOrEqual(OUTPUT_BYTES_MAX / 2);
    expect(told.memoryBytes).toBeLessThan(MEMORY_BYTES_MAX);
    rmSync(source);
    rmSync(target);
  });
});

describe('an apiserver that dies', () => {
  let world: ServerWorld;
  let client: Client;
  let sandbox: Sandbox;

  beforeAll(async () => {
    world = await startServerWorld({ backend: 'sim' });
    const { url, api_key: apiKey, environment } = world.variables;
    client = new Client({ url, apiKey });
    sandbox = await client.create({ environment });
  });
  afterAll(async () => {
    await client?.close();
    await world?.stop();
  });

  /** Kills the one that serves now; `dsec up` starts another. */
  const killApiserver = () => {
    const pid = execFileSync('sh', ['-c', `pgrep -P ${world.upPid} -f ' apiserver '`]);
    process.kill(Number(pid), 'SIGKILL');
  };
  const OUTPUT_BYTES = 24 * MIB;

  it('does not break the output of a command', async () => {
    const args = ['random', '7', `${OUTPUT_BYTES}`];
    const whole = await sandbox.exec(args);
    const wanted = createHash('sha256').update(whole.stdoutBytes).digest('hex');
    const command = await sandbox.start(args);
    for (const bytes of [streamOf(command.stream()), command.output()]) {
      const digest = createHash('sha256');
      let received = 0;
      let kills = 0;
      for await (const piece of bytes) {
        digest.update(piece);
        received += piece.byteLength;
        if (received > (kills + 1) * 8 * MIB && kills < 2) {
          killApiserver();
          kills += 1;
        }
      }
      expect({ received, kills }).toEqual({ received: OUTPUT_BYTES, kills: 2 });
      expect(digest.digest('hex')).toBe(wanted);
    }
  });

  it('does not break files, and nothing that is asked for happens twice', async () => {
    const content = Buffer.alloc(OUTPUT_BYTES, 'some bytes ');
    await sandbox.files.write('/file', content);
    let received = 0;
    for await (const piece of sandbox.files.stream('/file')) {
      if (received === 0) killApiserver();
      received += piece.byteLength;
    }
    expect(received).toBe(OUTPUT_BYTES);
    killApiserver();
    const job = `died-${process.pid}`;
    const made = await client.create({ environment: world.variables.environment, job });
    killApiserver();
    expect(await made.exec('echo once')).toMatchObject({ stdout: 'once\n' });
    killApiserver();
    const commands: string[] = [];
    for await (const { info } of made.commands()) commands.push(info.command);
    expect(commands).toEqual(['echo once']);
    const listed: string[] = [];
    for await (const { id } of client.list({ job })) listed.push(id);
    expect(listed).toEqual([made.id]);
  });
});

async function* streamOf(chunks: AsyncIterable<OutputChunk>): AsyncGenerator<Uint8Array> {
  for await (const { data } of chunks) yield data;
}
