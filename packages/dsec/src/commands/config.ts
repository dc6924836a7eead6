import type { Invocation } from '../command-line/invocation.ts';
import { SETTING_KEYS, SETTINGS, type SettingRow } from '../command-line/settings-table.ts';
import { printJson, renderTable } from '../output.ts';

/** Of a secret, so that two can be told apart. */
const SECRET_SHOWN = 'dsec_'.length + 4;

export async function run({ json, settings }: Invocation): Promise<void> {
  const shown = SETTING_KEYS.map((key) => {
    const { secret, about }: SettingRow = SETTINGS[key];
    const found = settings[key];
    const value = found === undefined || secret !== true ? found?.value : redact(found.value);
    return { key, value, source: found?.source, about };
  });
  if (json) {
    const present = shown.filter(({ value }) => value !== undefined);
    printJson(
      Object.fromEntries(present.map(({ key, value, source }) => [key, { value, source }])),
    );
    return;
  }
  const rows = shown.map(({ key, value, source, about }) => [
    ...[key, value ?? '-', source ?? `not set; ${about}`],
  ]);
  process.stdout.write(`${renderTable(['SETTING', 'VALUE', 'FROM'], rows)}\n`);
}

const redact = (secret: string) => `${secret.slice(0, SECRET_SHOWN)}…`;
