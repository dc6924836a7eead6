/**
 * The main job of `npm start`: starts DSec on this machine, makes the example layers and an environment of
 * them, runs a training job in small on it through the Python SDK, shows what came of it, and serves on.
 * What is there already is not made again.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Client, findServer } from '@dsec/libdsec';
import { asDsecError, DsecError } from '@dsec/std';
import { parseCount } from './client/quantities.ts';
import { resolveSettings, type Settings } from './command-line/settings.ts';
import { stopSignal } from './commands/interrupt.ts';
import {
  defaultStateRoot,
  makeStateDirectory,
  resolveStatePaths,
  type StatePaths,
} from './config.ts';
import { makeExampleLayers } from './examples/example-layers.ts';
import { type ExampleMirror, showNetworks, startExampleMirror } from './examples/network-demo.ts';
import { runTrainingJob } from './examples/training-job.ts';
import { printError, printWarning } from './output.ts';
import { requireContainers } from './up/preflight.ts';
import { StateTaken } from './up/state-lock.ts';
import { startUp, type Up } from './up/supervisor.ts';

const USAGE = `usage: npm start [-- OPTIONS]
  --once            end after the job, with its status
  --sandboxes N     in the burst (64)
  --state DIR       where DSec keeps its state (DSEC_STATE; /var/lib/dsec)
  --listen ADDRESS  where it serves (127.0.0.1:7720)
`;
const ENVIRONMENT = 'example';
const SANDBOXES_MAX = 10_000;
const CLI = fileURLToPath(new URL('./cli.js', import.meta.url));

try {
  process.exitCode = await main();
} catch (thrown) {
  const error = asDsecError(thrown);
  printError(error, false);
  process.exitCode = error.exitCode;
}

async function main(): Promise<number> {
  const { values } = readOptions();
  if (values.help) {
    process.stdout.write(USAGE);
    return 0;
  }
  const sandboxes = parseCount(values.sandboxes, '--sandboxes', 1, SANDBOXES_MAX);
  const options = {
    ...(values.state === undefined ? {} : { state: values.state }),
    ...(values.listen === undefined ? {} : { listen: values.listen }),
  };
  const settings = resolveSettings({ options, environment: process.env });
  const paths = resolveStatePaths(settings.state?.value);
  const stopped = stopSignal();
  await requireContainers(paths.root, printWarning, 'npm start');
  say(`starting DSec, with its state in ${paths.root}`);
  makeStateDirectory(paths.root);
  // An operator's own map stays in force, and then nothing is shown of networks.
  const mirror = settings.services === undefined ? await startExampleMirror(paths.root) : undefined;
  const up = await startOrFind(paths, withServices(settings, mirror));
  try {
    const job = { sandboxes, settings, stopped };
    const status = await runJob(up, paths, up.isOurs ? { ...job, mirror } : job);
    if (values.once || !up.isOurs) return status;
    say(invitation(up, paths, status));
    if (!stopped.aborted) {
      await new Promise((resolve) => stopped.addEventListener('abort', resolve, { once: true }));
    }
    say('ending; sandboxes run on, and the next start finds them');
    return status;
  } finally {
    await up.stop();
    mirror?.close();
  }
}

function withServices(settings: Settings, mirror: ExampleMirror | undefined): Settings {
  if (mirror === undefined) return settings;
  return { ...settings, services: { value: mirror.servicesFile, source: 'npm start' } };
}

type Serving = Pick<Up, 'url' | 'client' | 'clientFile' | 'stop'> & { readonly isOurs: boolean };

/** One that runs for the state directory already does as well. */
async function startOrFind(paths: StatePaths, settings: Settings): Promise<Serving> {
  try {
    const self = [process.execPath, CLI] as const;
    return { ...(await startUp({ paths, settings, notice: printWarning, self })), isOurs: true };
  } catch (thrown) {
    const clientFile = join(paths.root, 'client.json');
    if (!(thrown instanceof StateTaken) || !existsSync(clientFile)) throw thrown;
    const client = findServer({}, { DSEC_CLIENT: clientFile });
    say(`DSec runs already: using it at ${client.url}`);
    return { url: client.url, client, clientFile, isOurs: false, stop: async () => undefined };
  }
}

function readOptions() {
  try {
    return parseArgs({
      options: {
        once: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
        sandboxes: { type: 'string', default: '64' },
        state: { type: 'string' },
        listen: { type: 'string' },
      },
    });
  } catch (thrown) {
    throw new DsecError('invalid-argument', `${(thrown as Error).message}\n${USAGE}`);
  }
}

interface JobOptions {
  readonly sandboxes: number;
  readonly settings: Settings;
  readonly stopped: AbortSignal;
  /** Absent: the server knows another map, or none. */
  readonly mirror?: ExampleMirror | undefined;
}

async function runJob(up: Serving, paths: StatePaths, options: JobOptions): Promise<number> {
  const { sandboxes, stopped: signal } = options;
  say('layers');
  const layers = await makeExampleLayers({ paths, signal, say });
  const client = new Client(up.client);
  try {
    await client.environments.put(ENVIRONMENT, layers, { signal });
  } finally {
    await client.close();
  }
  say(`\na training job: ${sandboxes} sandboxes of ${ENVIRONMENT} in one burst`);
  const { clientFile } = up;
  const status = await runTrainingJob({
    ...{ environment: ENVIRONMENT, sandboxes, clientFile, signal },
  });
  if (options.mirror === undefined) return status;
  say('\nnetworks: a mirror that a rule opens, and nothing else');
  const shown = new Client(up.client);
  try {
    const isRight = await showNetworks({
      ...{ client: shown, environment: ENVIRONMENT, mirror: options.mirror, signal, say },
    });
    return isRight ? status : status || 1;
  } finally {
    await shown.close();
  }
}

function invitation({ url, clientFile }: Serving, { root }: StatePaths, status: number): string {
  const dsec = `node ${CLI}${root === defaultStateRoot() ? '' : ` --state ${root}`}`;
  return `
${status === 0 ? 'The job did what it should.' : 'The job did not do what it should: see above.'}
DSec serves at ${url}, with the key in ${clientFile}. Try, in another terminal:

  ${dsec} run --env ${ENVIRONMENT} --cwd /workspace/spans -- python3 -m pytest -q
  ${dsec} run --env ${ENVIRONMENT} --tty -- bash
  ${dsec} ps --all

Ctrl-C ends it.`;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
