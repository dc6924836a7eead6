import type { Exec, Sandbox as SandboxInfo } from '@dsec/protocol';
import { formatBytes, formatDuration } from '@dsec/std';
import { withClient } from '../client/connect.ts';
import { sandboxJson, showState, showTime } from '../client/table-values.ts';
import type { Invocation } from '../command-line/invocation.ts';
import { printJson, renderTable } from '../output.ts';

/** More are told by `dsec logs --list`. */
const COMMANDS_SHOWN = 10;
const SHOWN_LENGTH = 60;

export async function run({ args: [id = ''], json, settings }: Invocation): Promise<void> {
  await withClient(settings, async (client) => {
    const sandbox = await client.get(id);
    if (json) return printJson(sandboxJson(sandbox.info));
    const commands: Exec[] = [];
    for await (const { info } of sandbox.commands()) {
      commands.push(info);
      if (commands.length > COMMANDS_SHOWN) commands.shift();
    }
    process.stdout.write(`${renderTable([], rowsOf(sandbox.info))}\n`);
    if (commands.length === 0) return;
    process.stdout.write(`\n${renderTable(COMMAND_HEAD, commands.map(commandRow))}\n`);
  });
}

function rowsOf(info: SandboxInfo): string[][] {
  const { spec, usage, timings, protections } = info;
  const weak = protections.filter(({ state }) => state !== 'enforced');
  return [
    ['sandbox', info.id],
    ['state', showState(info)],
    ...optional('error', info.error === undefined ? undefined : info.error.message),
    ...optional('environment', spec.environment),
    ...info.layers.map(({ ref, layerId }) => ['layer', ref ?? layerId]),
    ['edge', info.edge],
    ['owner', `${info.project}/${info.principal}`],
    ...optional('job', spec.job),
    ...Object.entries(spec.labels ?? {}).map(([name, value]) => ['label', `${name}=${value}`]),
    ['created', showTime(info.createdAtMs)],
    ...optional('ended', info.endedAtMs === undefined ? undefined : showTime(info.endedAtMs)),
    ...optional('expires', info.expiresAtMs === undefined ? undefined : showTime(info.expiresAtMs)),
    ...optional(
      'ready after',
      timings.readyMs === undefined ? undefined : formatDuration(timings.readyMs),
    ),
    ...(usage === undefined ? [] : usageRows(usage)),
    ['protections', `${protections.length - weak.length} enforced`],
    ...weak.map(({ name, state, detail }) => [state, `${name} ${detail ?? ''}`.trim()]),
  ];
}

function usageRows(usage: NonNullable<SandboxInfo['usage']>): string[][] {
  const { memoryBytes, memoryPeakBytes, diskBytes, inodes, cpuUs, pids } = usage;
  return [
    ['memory', `${formatBytes(memoryBytes)}, at most ${formatBytes(memoryPeakBytes)}`],
    ['disk', `${formatBytes(diskBytes)} in ${inodes} inodes`],
    [
      'processor',
      `${formatDuration(cpuUs / 1000)} used by ${pids} ${pids === 1 ? 'process' : 'processes'}`,
    ],
  ];
}

const optional = (name: string, value: string | undefined): string[][] =>
  value === undefined ? [] : [[name, value]];

export const COMMAND_HEAD = ['COMMAND', 'STATE', 'STARTED', 'OUTPUT', 'WHAT'];

export function commandRow({
  id,
  state,
  exit,
  startedAtMs,
  stdout,
  stderr,
  command,
}: Exec): string[] {
  const end = exit?.signal === undefined ? exit?.exitCode : `signal ${exit.signal}`;
  return [
    ...[id, end === undefined ? state : `${state} (${end})`, showTime(startedAtMs)],
    formatBytes(stdout.totalBytes + stderr.totalBytes),
    command.length > SHOWN_LENGTH ? `${command.slice(0, SHOWN_LENGTH)}…` : command,
  ];
}
