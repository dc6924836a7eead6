import { Command } from 'commander';
import { resolveStatePaths } from '../config.ts';
import type { CommandRow } from './command-row.ts';
import { GLOBAL_OPTIONS } from './global-options.ts';
import type { Flags, Invocation } from './invocation.ts';
import { passCommandThrough } from './pass-through.ts';
import { COMMANDS, GROUPS } from './rows.ts';
import { resolveSettings } from './settings.ts';
import { SETTINGS, type SettingKey, type SettingRow } from './settings-table.ts';
import type { OptionRow } from './table.ts';
import { helpHint, withHint } from './usage-error.ts';

/** The parser of the whole command line. Nothing has been read or loaded yet. */
export function buildProgram(version: string): Command {
  const program = new Command('dsec')
    .description('Sandboxes for training and evaluating language-model agents')
    .version(version)
    .showHelpAfterError('(dsec --help shows the commands)')
    .enablePositionalOptions()
    .exitOverride();
  for (const option of GLOBAL_OPTIONS) addOption(program, option);
  const groups = new Map<string, Command>();
  for (const row of COMMANDS) {
    const [first = '', second] = row.name.split(' ');
    if (second !== undefined && !groups.has(first)) groups.set(first, addGroup(program, first));
    addCommand(groups.get(first) ?? program, second ?? first, row, version);
  }
  return program;
}

function addGroup(program: Command, name: string): Command {
  const group = program
    .command(name)
    .description(GROUPS[name] ?? '')
    .showHelpAfterError(`(${helpHint(name)})`)
    .enablePositionalOptions();
  for (const option of GLOBAL_OPTIONS) addOption(group, option);
  return group;
}

function addCommand(parent: Command, name: string, row: CommandRow, version: string): void {
  const command = parent.command(name).description(row.summary);
  for (const { syntax, about } of row.arguments ?? []) command.argument(syntax, about);
  const options = [...(row.options ?? []), ...GLOBAL_OPTIONS];
  for (const option of options) addOption(command, option);
  if (row.passThrough === true) passCommandThrough(command, ownCountOf(row));
  command.showHelpAfterError(`(${helpHint(row.name)})`);
  command.addHelpText('after', helpAfter(row));
  command.action(async () => {
    const { run } = await row.load();
    try {
      await run(invocationOf(command, row, version));
    } catch (thrown) {
      throw withHint(thrown, row.name);
    }
  });
}

/** Arguments that are not the command to pass through. */
function ownCountOf(row: CommandRow): number {
  return (row.arguments ?? []).filter(({ syntax }) => !syntax.includes('...')).length;
}

function addOption(command: Command, option: OptionRow): void {
  const { flags, about, setting } = option;
  const initial = setting === undefined ? undefined : (SETTINGS[setting] as SettingRow).default;
  const text = initial === undefined ? about : `${about} (default: ${initial})`;
  if (option.repeatable === true) command.option(flags, text, collect);
  else if (option.default === undefined) command.option(flags, text);
  else command.option(flags, text, option.default);
}

const collect = (value: string, before: readonly string[] = []) => [...before, value];

function helpAfter({ details, examples }: CommandRow): string {
  const shown = examples.map((example) => `  dsec ${example}`).join('\n');
  const before = details === undefined ? '' : `\n${details}\n`;
  return `${before}\nExample${examples.length > 1 ? 's' : ''}:\n${shown}`;
}

function invocationOf(command: Command, row: CommandRow, version: string): Invocation {
  const flags = command.optsWithGlobals() as Flags;
  const options: Partial<Record<SettingKey, string>> = {};
  for (const { flags: syntax, setting } of [...(row.options ?? []), ...GLOBAL_OPTIONS]) {
    const value = flags[optionName(syntax)];
    if (setting !== undefined && typeof value === 'string') options[setting] = value;
  }
  const settings = resolveSettings({ options, environment: process.env });
  return {
    ...{ args: [...command.args], flags, settings, version, table: COMMANDS },
    json: flags.json === true,
    paths: resolveStatePaths(settings.state?.value),
  };
}

/** `-u, --user <name>` → `user`; `--keep-ended-ms <ms>` → `keepEndedMs`. */
export function optionName(flags: string): string {
  const long = /--([a-z-]+)/.exec(flags)?.[1] ?? '';
  return long.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
