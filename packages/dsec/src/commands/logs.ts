import { once } from 'node:events';
import type { Command, Sandbox } from '@dsec/libdsec';
import { DsecError } from '@dsec/std';
import { withClient } from '../client/connect.ts';
import type { Invocation } from '../command-line/invocation.ts';
import { printJson, printWarning, renderTable } from '../output.ts';
import { withInterrupt } from './interrupt.ts';
import { COMMAND_HEAD, commandRow } from './show.ts';

export async function run({ args, flags, json, settings }: Invocation): Promise<void> {
  const [id = '', execId] = args;
  await withClient(settings, async (client) => {
    const sandbox = await client.get(id);
    if (flags.list === true) return listCommands(sandbox, json);
    const command =
      execId === undefined ? await lastCommand(sandbox) : await sandbox.command(execId);
    if (json) return printJson(command.info);
    await withInterrupt((signal) => passLogs(command, flags.follow === true, signal));
    // One that never ran has written nothing.
    if (command.error !== undefined) throw command.error;
  });
}

async function listCommands(sandbox: Sandbox, json: boolean): Promise<void> {
  const commands = [];
  for await (const { info } of sandbox.commands()) commands.push(info);
  if (json) printJson({ commands });
  else process.stdout.write(`${renderTable(COMMAND_HEAD, commands.map(commandRow))}\n`);
}

async function lastCommand(sandbox: Sandbox): Promise<Command> {
  let last: Command | undefined;
  for await (const command of sandbox.commands()) last = command;
  if (last !== undefined) return last;
  throw new DsecError('not-found', `no command has run in ${sandbox.id}`);
}

/** What is there of both outputs, each to its own side; with `follow` until the command ends. */
async function passLogs(command: Command, follow: boolean, signal: AbortSignal): Promise<void> {
  const reached = { stdout: 0, stderr: 0 };
  const { stdout, stderr } = command.info;
  const isComplete = () =>
    reached.stdout >= stdout.totalBytes && reached.stderr >= stderr.totalBytes;
  if (!follow && isComplete()) return;
  for await (const { stream, data, offset } of command.stream({ signal, skipLost: true })) {
    if (offset > reached[stream]) {
      printWarning(`${stream}: ${offset - reached[stream]} bytes are no longer kept`);
    }
    reached[stream] = offset + data.byteLength;
    const sink = process[stream];
    if (!sink.write(data)) await once(sink, 'drain', { signal });
    if (!follow && isComplete()) return;
  }
}
