import { type ExecSpec, ROUTES, type Sandbox } from '@dsec/protocol';
import type { SandboxId } from '@dsec/std';
import { expect, it } from 'vitest';
import { CREATE } from '../core-world.ts';
import { startEdge } from '../support/served-edge.ts';

it('says of a simulated sandbox what it says of a container: which command memory has ended', async () => {
  const { clientOf } = await startEdge();
  const client = clientOf('ours');
  const make = () => client.call(ROUTES.createSandbox, { body: CREATE });
  const run = async ({ id }: Sandbox, argv: string[]) => {
    const params = { sandboxId: id as SandboxId };
    const body: ExecSpec = { argv, waitMs: 30_000 };
    return (await client.call(ROUTES.startExec, { params, body })).exec;
  };
  const killed = (oomKilled: boolean) => ({ state: 'exited', exit: { signal: 9, oomKilled } });
  const well = { state: 'exited', exit: { exitCode: 0, oomKilled: false } };
  const [eater, neighbour] = [await make(), await make()];

  expect(await run(eater, ['oom'])).toMatchObject(killed(true));
  expect(await run(eater, ['true'])).toMatchObject(well);
  expect(await run(neighbour, ['true'])).toMatchObject(well);
  // Neither killed by somebody else nor an earlier kill is the limit's work.
  expect(await run(eater, ['kill-self', '9'])).toMatchObject(killed(false));
  expect(await run(eater, ['oom'])).toMatchObject(killed(true));
});
