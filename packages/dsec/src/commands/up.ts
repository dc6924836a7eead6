import type { Invocation } from '../command-line/invocation.ts';
import { settingOf } from '../command-line/settings.ts';
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
  return `DSec serves at ${url} (backend ${backend}, state in ${state})
  key     in ${clientFile}, where the CLI and the SDKs of this user find it
  logs    ${logs}
  try     dsec run --layer base/example:latest -- uname -a
Ctrl-C ends it. Sandboxes run on, and the next dsec up finds them.
`;
}
