import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { DsecError } from '@dsec/std';
import { defaultStateRoot } from '../config.ts';
import { SETTING_KEYS, SETTINGS, type SettingKey, type SettingRow } from './settings-table.ts';

export interface SettingValue {
  readonly value: string;
  /** `default`, `file PATH`, `environment NAME`, `option --name`. */
  readonly source: string;
}

/** The resolved configuration. Only what has a value is in it. */
export type Settings = Readonly<Partial<Record<SettingKey, SettingValue>>>;

export interface SettingSources {
  /** Values of the options of this call. */
  readonly options: Readonly<Partial<Record<SettingKey, string>>>;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

const FILE_BYTES_MAX = 65_536;

/**
 * Defaults, then the file, then the environment, then options: the later one wins. An empty variable counts
 * as none. `invalid-argument` for an empty option and for a file that is not what it should be; a file that
 * was named must be there.
 */
export function resolveSettings({ options, environment }: SettingSources): Settings {
  const given = (key: SettingKey): SettingValue | undefined => {
    const { variable, option }: SettingRow = SETTINGS[key];
    const fromOption = options[key];
    if (fromOption === '') throw new DsecError('invalid-argument', `${option} takes a value`);
    if (fromOption !== undefined) return { value: fromOption, source: `option ${option}` };
    const fromVariable = environment[variable];
    return fromVariable ? { value: fromVariable, source: `environment ${variable}` } : undefined;
  };
  const state = given('state') ?? { value: defaultStateRoot(), source: 'default' };
  const named = given('config');
  const file = resolve(named?.value ?? join(state.value, 'dsec.json'));
  const inFile = readSettingsFile(file, named !== undefined);
  const settings: Partial<Record<SettingKey, SettingValue>> = {};
  for (const key of SETTING_KEYS) {
    const value = given(key) ?? fileValue(inFile, key, file) ?? defaultValue(key);
    if (value !== undefined) settings[key] = value;
  }
  return { ...settings, state: { ...state, value: resolve(state.value) } };
}

/** The value of a setting that has a default. */
export function settingOf(settings: Settings, key: SettingKey): string {
  const found = settings[key];
  if (found === undefined) throw new DsecError('internal', `the setting ${key} has no value`);
  return found.value;
}

function fileValue(
  inFile: Readonly<Record<string, string>>,
  key: SettingKey,
  file: string,
): SettingValue | undefined {
  const value = inFile[key];
  return value === undefined ? undefined : { value, source: `file ${file}` };
}

function defaultValue(key: SettingKey): SettingValue | undefined {
  const { default: value }: SettingRow = SETTINGS[key];
  return value === undefined ? undefined : { value, source: 'default' };
}

function readSettingsFile(file: string, needed: boolean): Readonly<Record<string, string>> {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    // A directory of others, too, holds nothing for us; whoever needs it says so.
    if (!needed && (code === 'ENOENT' || code === 'ENOTDIR' || code === 'EACCES')) return {};
    throw new DsecError('invalid-argument', `the configuration file ${file} cannot be read`, {
      cause: thrown,
    });
  }
  const values = text.length <= FILE_BYTES_MAX ? parseObject(text) : undefined;
  if (values === undefined) {
    throw new DsecError('invalid-argument', `${file} is not a JSON object of at most 64 KiB`);
  }
  return Object.fromEntries(
    Object.entries(values).map(([key, value]) => [key, checkEntry(file, key, value)]),
  );
}

function checkEntry(file: string, key: string, value: unknown): string {
  const known = SETTING_KEYS.filter((name) => SETTINGS[name].inFile);
  if (!(known as readonly string[]).includes(key)) {
    const names = known.join(', ');
    throw new DsecError('invalid-argument', `${file}: ${key} has no place there; known: ${names}`);
  }
  if (typeof value === 'number') return String(value);
  if (typeof value === 'string' && value !== '') return value;
  throw new DsecError('invalid-argument', `${file}: ${key} takes a text or a number`);
}

function parseObject(text: string): object | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
