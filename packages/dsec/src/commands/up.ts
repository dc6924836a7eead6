import type { Invocation } from '../command-line/invocation.ts';
import { settingOf } from '../command-line/settings.ts';
import { defaultStateRoot } from '../config.ts';
import { printJson, printWarning } from '../output.ts';
import { requireContainers } from '../up/preflight.ts';
import { startUp, type Up } from '../up/supervisor.ts';
import { stopSignal } from './interrupt.ts';

export async function run({ json, paths, settings }: Invocation): Promise<void> {
  const stopped = stopSignal();
  const backend = settingOf(settings, 'backend');
  if (backend === 'container') await requireContainers(paths.root, printWarning);
  const up = await startUp({
    ...{ paths, settings, notice: printWarning },
    self: [process.execPath, process.argv[1] ?? ''],
  });
  if (json) {
    const { url, clientFile, logs, pids } = up;
    printJson({ ready: true, url, clientFile, logs, pids, pid: process.pid });
  } else {
    process.stdout.write(greeting(up, paths.root, backend));
  }
  if (!stopped.aborted) {
    await new Promise((resolve) => stopped.addEventListener('abort', resolve, { once: true }));
  }
  if (!json) process.stdout.write('ending; sandboxes run on, and the next dsec up finds them\n');
  await up.stop();
}

function greeting({ url, clientFile, logs }: Up, state: string, backend: string): string {
  const isUsual = state === defaultStateRoot();
  const dsec = isUsual ? 'dsec' : `dsec --state ${state}`;
  // The SDKs look there by themselves.
  const sdk =
    clientFile === '/var/lib/dsec/client.json' ? '' : `; for the SDKs DSEC_CLIENT names it`;
  return `DSec serves at ${url} (backend ${backend}, state in ${state})
  key     in ${clientFile}, where ${dsec} finds it${sdk}
  logs    in ${logs}
  try     ${dsec} run --env example -- uname -a    (npm start makes this environment)
Ctrl-C ends it. Sandboxes run on, and the next dsec up finds them.
`;
}
