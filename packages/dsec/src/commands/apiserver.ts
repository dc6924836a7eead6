import { CRASH_POINTS } from '@dsec/apiserver';
import { apiserverConfigOf } from '../apiserver-config.ts';
import { startApiserverDaemon } from '../apiserver-daemon.ts';
import { type Invocation, listFlag, textFlag } from '../command-line/invocation.ts';
import { settingOf } from '../command-line/settings.ts';
import { printJson } from '../output.ts';
import { stopSignal } from './interrupt.ts';

export async function run({ flags, json, paths, settings, version }: Invocation): Promise<void> {
  if (flags.crashPoints === true) {
    if (json) printJson(CRASH_POINTS);
    else process.stdout.write(`${CRASH_POINTS.join('\n')}\n`);
    return;
  }
  const config = apiserverConfigOf(
    {
      listen: settingOf(settings, 'listen'),
      logLevel: settingOf(settings, 'logLevel'),
      edge: listFlag(flags, 'edge'),
      edges: textFlag(flags, 'edges'),
      ticketKey: textFlag(flags, 'ticketKey'),
      clientFile: textFlag(flags, 'clientFile'),
      project: textFlag(flags, 'project') ?? 'default',
      principal: textFlag(flags, 'principal') ?? 'operator',
      store: textFlag(flags, 'store'),
      platformProject: textFlag(flags, 'platformProject') ?? 'platform',
      watchMs: textFlag(flags, 'watchMs') ?? '1000',
      allowHost: listFlag(flags, 'allowHost'),
      ...{ tlsCert: settings.tlsCert?.value, tlsKey: settings.tlsKey?.value },
      rateLimit: settingOf(settings, 'rateLimit'),
    },
    paths,
  );
  const stopped = stopSignal();
  const daemon = await startApiserverDaemon(config, version);
  const { place } = daemon;
  const { address } = daemon.apiserver;
  if (json) printJson({ ready: true, address, ...place, pid: process.pid });
  else process.stdout.write(`serving at ${place.url}\n`);
  if (!stopped.aborted) {
    await new Promise((resolve) => stopped.addEventListener('abort', resolve, { once: true }));
  }
  await daemon.close();
}
