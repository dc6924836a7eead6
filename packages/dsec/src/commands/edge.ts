import { CRASH_POINTS } from '@dsec/edge';
import { asDsecError } from '@dsec/std';
import type { Command } from 'commander';
import { type EdgeCommandOptions, edgeConfigOf } from '../edge-config.ts';
import { type EdgeDaemon, startEdgeDaemon } from '../edge-daemon.ts';
import { printError, printJson } from '../output.ts';
import { globalOptions } from './globals.ts';

export function addEdgeCommand(program: Command): void {
  program
    .command('edge')
    .description('run the daemon that owns the sandboxes of this machine')
    .option('--edge-id <id>', 'of this edge, in every id of its sandboxes', 'local')
    .option('--shard-id <id>', 'of the part of the fleet that it belongs to', 'local')
    .option('--backend <kind>', 'container, or sim to try things out without root', 'container')
    .option('--listen <address>', 'unix:/PATH (default: run/edge.sock), 127.0.0.1:PORT, [::1]:PORT')
    .option('--ticket-keys <file>', 'JSON of the public keys that sign tickets: {"<id>": "<PEM>"}')
    .option('--platform-project <name>', 'whose callers see the events of every project')
    .option('--launcher <program>', 'dsec-launcher (default: as built in native/)')
    .option('--agent <program>', 'aether (default: as built in native/)')
    .option('--keep-ended-ms <ms>', 'how long an ended sandbox stays listed', '600000')
    .option('--log-level <level>', 'debug, info, warn, error or silent', 'info')
    .option('--crash-points', 'list the names that DSEC_CRASH_POINT takes, and end')
    .addHelpText(
      'after',
      '\nSandboxes run on when the daemon ends. SIGTERM ends it, SIGHUP reads the keys again.',
    )
    .action(async (options: EdgeCommandOptions & { crashPoints?: true }, command: Command) => {
      const { json, paths } = globalOptions(command);
      if (options.crashPoints === true) {
        if (json) printJson(CRASH_POINTS);
        else process.stdout.write(`${CRASH_POINTS.join('\n')}\n`);
        return;
      }
      if (options.ticketKeys === undefined)
        command.error("error: option '--ticket-keys' is missing");
      const stopped = stopSignal();
      const config = edgeConfigOf(options, paths);
      const daemon = await startEdgeDaemon(config, program.version() ?? '', stopped);
      await serve(daemon, stopped, json);
    });
}

/** Aborts at the first SIGTERM or SIGINT; a second one ends the process at once. */
function stopSignal(): AbortSignal {
  const controller = new AbortController();
  for (const name of ['SIGTERM', 'SIGINT'] as const) {
    process.once(name, () => controller.abort());
  }
  return controller.signal;
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
