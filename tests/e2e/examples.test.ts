/** The examples for TypeScript, as a reader of their guide runs them. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { type ServerWorld, startServerWorld } from './server-world.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const EXAMPLES = join(ROOT, 'examples/typescript');

compileFirst(join(ROOT, 'packages/dsec'));
compileFirst(EXAMPLES);

const run = promisify(execFile);

describe('examples/typescript', () => {
  let world: ServerWorld;

  beforeAll(async () => {
    world = await startServerWorld({ backend: 'sim' });
  });
  afterAll(async () => {
    await world?.stop();
  });

  const output = async (name: string, ...args: string[]) => {
    const env = { ...process.env, DSEC_CLIENT: join(world.state, 'client.json') };
    const program = join(EXAMPLES, 'dist', `${name}.js`);
    return (await run(process.execPath, [program, ...args], { env })).stdout;
  };

  it('quick-start shows commands, files and output', async () => {
    const said = await output('quick-start');
    expect(said).toMatch(/^sb-\S+ is running\nhello world\nwritten from outside\nstdout: one\n/);
    expect(said).toMatch(/it exited with 3\n$/);
  });

  it('burst uses many, and stops them', async () => {
    const said = await output('burst', 'example', '5');
    expect(said).toBe('5 of 5 sandboxes said ready\n5 stopped\n');
  });

  it('report-listing says what the report says', async () => {
    expect(await output('report-listing')).toBe('hello world\n');
  });
});
