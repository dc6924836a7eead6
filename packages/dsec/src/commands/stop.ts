import type { Client } from '@dsec/libdsec';
import { asDsecError, DsecError, toErrorBody } from '@dsec/std';
import { withClient } from '../client/connect.ts';
import { type Invocation, textFlag } from '../command-line/invocation.ts';
import { printError, printJson, printLines } from '../output.ts';

/** Stops under way at a time. */
const STOPS_MAX = 32;

export async function run({ args: ids, flags, json, settings }: Invocation): Promise<void> {
  const job = textFlag(flags, 'job');
  if ((job === undefined) === (ids.length === 0)) {
    throw new DsecError('invalid-argument', 'name sandboxes, or a job with --job');
  }
  await withClient(settings, async (client) => {
    if (job !== undefined) return stopJob(client, job, json);
    await stopAll(client, ids, json);
  });
}

async function stopJob(client: Client, job: string, json: boolean): Promise<void> {
  const { matched, changed, failed, failures } = await client.jobs.stop(job);
  if (json) return printJson({ matched, changed, failed, failures });
  printLines([`stopped ${changed} of ${matched} sandboxes of ${job}, ${failed} failed`]);
  const [first] = failures;
  if (first === undefined) return;
  throw new DsecError(first.error.code, `${first.sandbox}: ${first.error.message}`);
}

/** One that cannot be stopped does not keep the others. */
async function stopAll(client: Client, ids: readonly string[], json: boolean): Promise<void> {
  const stopped: string[] = [];
  const failures: { readonly sandbox: string; readonly error: DsecError }[] = [];
  const waiting = [...ids];
  const worker = async () => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      try {
        await (await client.get(id)).stop();
        stopped.push(id);
        if (!json) printLines([id]);
      } catch (thrown) {
        failures.push({ sandbox: id, error: asDsecError(thrown) });
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(STOPS_MAX, ids.length) }, worker));
  if (json) {
    const told = failures.map(({ sandbox, error }) => ({ sandbox, error: toErrorBody(error) }));
    printJson({ stopped, failures: told });
  }
  for (const { sandbox, error } of failures) {
    const isNamed = error.message.includes(sandbox);
    const named = isNamed ? error : new DsecError(error.code, `${sandbox}: ${error.message}`);
    if (!json) printError(named, false);
    process.exitCode ??= named.exitCode;
  }
}
