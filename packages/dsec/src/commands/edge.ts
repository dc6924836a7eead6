import { CRASH_POINTS } from '@dsec/edge';
import { asDsecError, DsecError } from '@dsec/std';
import { type Invocation, textFlag } from '../command-line/invocation.ts';
import { type Settings, settingOf } from '../command-line/settings.ts';
import { type EdgeCommandOptions, edgeConfigOf } from '../edge-config.ts';
import { type EdgeDaemon, startEdgeDaemon } from '../edge-daemon.ts';
import { printError, printJson } from '../output.ts';
import { stopSignal } from './interrupt.ts';

export async function run({ flags, json, paths, settings, version }: Invocation): Promise<void> {
  if (flags.crashPoints === true) {
    if (json) printJson(CRASH_POINTS);
    else process.stdout.write(`${CRASH_POINTS.join('\n')}\n`);
    return;
  }
  const ticketKeys = textFlag(flags, 'ticketKeys');
  if (ticketKeys === undefined) {
    throw new DsecError('invalid-argument', 'the option --ticket-keys is missing');
  }
  const stopped = stopSignal();
  const platformProject = textFlag(flags, 'platformProject');
  const config = edgeConfigOf({ ...optionsOf(settings), ticketKeys, platformProject }, paths);
  const daemon = await startEdgeDaemon(config, version, stopped);
  await serve(daemon, stopped, json);
}

function optionsOf(settings: Settings): Omit<EdgeCommandOptions, 'ticketKeys'> {
  return {
    edgeId: settingOf(settings, 'edgeId'),
    shardId: settingOf(settings, 'shardId'),
    backend: settingOf(settings, 'backend'),
    logLevel: settingOf(settings, 'logLevel'),
    keepEndedMs: settingOf(settings, 'keepEndedMs'),
    listen: settings.edgeListen?.value,
    launcher: settings.launcher?.value,
    agent: settings.agent?.value,
    services: settings.services?.value,
    networkPool: settingOf(settings, 'networkPool'),
    networkGateway: settingOf(settings, 'networkGateway'),
  };
}

async function serve(daemon: EdgeDaemon, stopped: AbortSignal, json: boolean): Promise<void> {
  const { edge, server } = daemon;
  const address = server.address;
  if (json) printJson({ ready: true, address, epoch: edge.journal.epoch, pid: process.pid });
  else process.stdout.write(`serving at ${JSON.stringify(address)}\n`);
  const onHangup = () => {
    try {
      daemon.reloadKeys();
    } catch (thrown) {
      printError(asDsecError(thrown), false);
    }
  };
  process.on('SIGHUP', onHangup);
  if (!stopped.aborted) {
    await new Promise((resolve) => stopped.addEventListener('abort', resolve, { once: true }));
  }
  process.removeListener('SIGHUP', onHangup);
  await daemon.close();
}
