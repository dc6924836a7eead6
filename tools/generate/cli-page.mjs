/**
 * `docs/reference/cli.md`, from the table of commands in `packages/dsec`. The files of the table are
 * translated here one by one, since they load nothing else: the page can be made while other packages do
 * not compile.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import ts from 'typescript';

const SOURCES = 'packages/dsec/src/command-line';
const FILES = [
  ...['global-options', 'rows', 'rows-layers', 'rows-policy', 'rows-sandboxes', 'rows-server'],
  ...['rows-tools', 'settings-table', 'words'],
];

/** @param {string} root */
export async function renderCliPage(root) {
  const { rows, global, settings } = await loadTable(root);
  const sections = rows.COMMANDS.map((row) => commandSection(row, settings.SETTINGS));
  const list = rows.COMMANDS.map(
    ({ name, summary }) =>
      `| [\`dsec ${name}\`](#dsec-${name.replaceAll(' ', '-')}) | ${summary} |`,
  );
  return `<!-- Generated from ${SOURCES} by \`npm run generate\`. Do not edit. -->

# The command line

\`node packages/dsec/dist/cli.js\` is the command \`dsec\`. The [guide](../guides/cli.md) shows it at work.

| command | |
|---|---|
${list.join('\n')}

Every command takes, before or after it:

${optionTable(global.GLOBAL_OPTIONS, settings.SETTINGS)}

An error ends a command with the exit code of [its row](errors.md); 2 is a command line that cannot
be understood. \`run\` and \`exec\` pass on the exit code of the command inside, or 128 and the number of
the signal that ended it.

${sections.join('\n')}
## Settings

Defaults are overruled by the file (\`dsec.json\` in the state directory, or \`--config\`), it by the
environment, and that by options. \`dsec config\` shows each value and where it comes from.

| setting | variable | option | in the file | default | |
|---|---|---|---|---|---|
${Object.entries(settings.SETTINGS).map(settingRow).join('\n')}
`;
}

/** @param {string} root */
async function loadTable(root) {
  const directory = mkdtempSync(join(tmpdir(), 'dsec-cli-page-'));
  try {
    writeFileSync(join(directory, 'package.json'), '{"type":"module"}');
    for (const name of FILES) {
      const source = readFileSync(join(root, SOURCES, `${name}.ts`), 'utf8');
      const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
      const { outputText } = ts.transpileModule(source, {
        compilerOptions: { ...options, rewriteRelativeImportExtensions: true },
      });
      writeFileSync(join(directory, `${name}.js`), outputText);
    }
    const load = (name) => import(pathToFileURL(join(directory, `${name}.js`)).href);
    const [rows, global, settings] = await Promise.all(
      ['rows', 'global-options', 'settings-table'].map(load),
    );
    return { rows, global, settings };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function commandSection(row, settings) {
  const { name, summary, details, arguments: args = [], options = [], examples } = row;
  const usage = ['dsec', name, ...(options.length > 0 ? ['[options]'] : []), ...args.map(usageOf)];
  const parts = [
    `## dsec ${name}`,
    `${sentence(summary)}${details === undefined ? '' : ` ${details}`}`,
    `\`\`\`\n${usage.join(' ')}\n\`\`\``,
    ...(args.length === 0 ? [] : [argumentTable(args)]),
    ...(options.length === 0 ? [] : [optionTable(options, settings)]),
    `\`\`\`\n${examples.map((example) => `dsec ${example}`).join('\n')}\n\`\`\``,
  ];
  return `${parts.join('\n\n')}\n`;
}

const usageOf = ({ syntax }) => syntax;
const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;
const cell = (text) => text.replaceAll('|', '\\|').replaceAll('<', '\\<');

function argumentTable(args) {
  const rows = args.map(({ syntax, about }) => `| \`${syntax}\` | ${cell(about)} |`);
  return ['| argument | |', '|---|---|', ...rows].join('\n');
}

function optionTable(options, settings) {
  const rows = options.map(({ flags, about, setting, default: own }) => {
    const initial = own ?? (setting === undefined ? undefined : settings[setting].default);
    const more = initial === undefined ? '' : ` (default: \`${initial}\`)`;
    return `| \`${flags}\` | ${cell(about)}${more} |`;
  });
  return ['| option | |', '|---|---|', ...rows].join('\n');
}

function settingRow([key, { variable, option, inFile, default: initial, about }]) {
  const columns = [
    ...[`\`${key}\``, `\`${variable}\``, option === undefined ? '' : `\`${option}\``],
    ...[inFile ? 'yes' : 'no', initial === undefined ? '' : `\`${initial}\``, cell(about)],
  ];
  return `| ${columns.join(' | ')} |`;
}
