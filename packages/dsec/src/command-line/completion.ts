/** Completion scripts, made from the table. Ids of sandboxes and names are asked of the server. */
import { GLOBAL_OPTIONS } from './global-options.ts';
import type { CommandShape, NamesAsked, OptionRow } from './table.ts';

const IDS = 'dsec ps --quiet 2>/dev/null';
const NAMES: Readonly<Record<NamesAsked, string>> = {
  environments: 'dsec env ls --quiet 2>/dev/null',
};

type Table = readonly CommandShape[];

export function completionFor(shell: 'bash' | 'zsh' | 'fish', table: Table): string {
  if (shell === 'fish') return fishScript(table);
  return shell === 'zsh' ? zshScript(table) : bashScript(table);
}

/** First words, and the second words of each group. */
function words(table: Table): Map<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  for (const { name } of table) {
    const [first = '', second] = name.split(' ');
    const found = groups.get(first) ?? [];
    groups.set(first, second === undefined ? found : [...found, second]);
  }
  return groups;
}

const optionsOf = ({ options = [] }: CommandShape) => [...options, ...GLOBAL_OPTIONS];
const longOf = ({ flags }: OptionRow) => /--[a-z-]+/.exec(flags)?.[0] ?? '';
const shortOf = ({ flags }: OptionRow) => /^-[a-z](?=,)/.exec(flags)?.[0];
const argumentWords = ({ arguments: args = [] }: CommandShape) =>
  args.flatMap(({ words: known = [] }) => known);
/** Commands that print what an argument may be. */
const argumentSources = ({ arguments: args = [] }: CommandShape) => [
  ...(args.some(({ syntax }) => syntax.includes('sandbox')) ? [IDS] : []),
  ...args.flatMap(({ names }) => (names === undefined ? [] : NAMES[names])),
];
/** The words that an option takes, where they are known; `asked` wraps a command that prints them. */
const valuesOf = ({ words: known, names }: OptionRow, asked: (command: string) => string) =>
  names === undefined ? known?.join(' ') : asked(NAMES[names]);

function bashScript(table: Table): string {
  const groups = words(table);
  const cases = table.flatMap((row) => {
    const more = argumentSources(row).map((command) => ` $(${command})`);
    const valued = optionsOf(row).flatMap((option) => {
      const values = valuesOf(option, (command) => `$(${command})`);
      if (values === undefined) return [];
      const forms = [longOf(option), shortOf(option)].filter((form) => form !== undefined);
      const when = forms.map((form) => `"${row.name} ${form}"`).join('|');
      return [`    ${when}) COMPREPLY=($(compgen -W "${values}" -- "$word")); return;;`];
    });
    const longs = [...argumentWords(row), ...optionsOf(row).map(longOf)].join(' ');
    return [...valued, `    "${row.name} "*) all="${longs}${more.join('')}";;`];
  });
  const seconds = [...groups].flatMap(([first, second]) =>
    second.length === 0 ? [] : [`    ${first}) all="${second.join(' ')}"; depth=2;;`],
  );
  return `# Completion of dsec for bash.
_dsec() {
  local word=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD-1]}
  local all="" depth=1 name=\${COMP_WORDS[1]}
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W "${[...groups.keys()].join(' ')}" -- "$word")); return
  fi
  case "$name" in
${seconds.join('\n')}
  esac
  if [ "$depth" -eq 2 ]; then
    if [ "$COMP_CWORD" -eq 2 ]; then
      COMPREPLY=($(compgen -W "$all" -- "$word")); return
    fi
    name="$name \${COMP_WORDS[2]}"
  fi
  case "$name $previous" in
${cases.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$all" -- "$word"))
  [ \${#COMPREPLY[@]} -gt 0 ] || COMPREPLY=($(compgen -f -- "$word"))
}
complete -F _dsec dsec
`;
}

/** The script for bash runs in zsh too. */
function zshScript(table: Table): string {
  const begin = [
    'autoload -U +X compinit && compinit',
    'autoload -U +X bashcompinit && bashcompinit',
  ];
  return [...begin, bashScript(table)].join('\n');
}

function fishScript(table: Table): string {
  const quoted = (text: string) => `'${text.replace(/['\\\\]/g, '\\$&')}'`;
  const lines = ['# Completion of dsec for fish.', 'complete -c dsec -f'];
  for (const row of table) {
    const [first = '', second] = row.name.split(' ');
    const seen =
      second === undefined ? first : `${first}; and __fish_seen_subcommand_from ${second}`;
    const before =
      second === undefined ? '__fish_use_subcommand' : `__fish_seen_subcommand_from ${first}`;
    const when = `__fish_seen_subcommand_from ${seen}`;
    lines.push(
      `complete -c dsec -n ${quoted(before)} -a ${second ?? first} -d ${quoted(row.summary)}`,
    );
    for (const command of argumentSources(row))
      lines.push(`complete -c dsec -n ${quoted(when)} -a ${quoted(`(${command})`)}`);
    for (const word of argumentWords(row))
      lines.push(`complete -c dsec -n ${quoted(when)} -a ${word}`);
    for (const option of optionsOf(row)) {
      const words = valuesOf(option, (command) => `(${command})`);
      const values = words === undefined ? '' : ` -xa ${quoted(words)}`;
      const short = shortOf(option);
      const names = `${short === undefined ? '' : `-s ${short.slice(1)} `}-l ${longOf(option).slice(2)}`;
      lines.push(
        `complete -c dsec -n ${quoted(when)} ${names} -d ${quoted(option.about)}${values}`,
      );
    }
  }
  for (const [first, second] of words(table)) {
    if (second.length > 0) lines.push(`complete -c dsec -n __fish_use_subcommand -a ${first}`);
  }
  return `${lines.join('\n')}\n`;
}
