import type { ProcessSystem, SimProcess } from './processes.ts';
import { type ProgramSetting, startProgram } from './program.ts';

/** What lives on from one command of a session to the next. */
export interface ShellState {
  env: Map<string, string>;
  cwd: string;
}

export interface ShellResult {
  readonly exitCode: number;
  /** The shell itself has ended. */
  readonly isOver: boolean;
  /** The shell is to end so much later, whatever it does then. */
  readonly endsInMs?: number | undefined;
}

const NOT_FOUND = 127;
const SIGNALLED = 128;

/**
 * A very small shell: statements between `;` or line ends, `&`, words with quotes and `$NAME`, and the
 * commands `cd`, `export`, `NAME=value`, `exit`, `end-in MS`. Everything else is a program.
 */
export async function runShell(
  setting: ProgramSetting,
  state: ShellState,
  text: string,
  system: ProcessSystem,
): Promise<ShellResult> {
  let exitCode = 0;
  let endsInMs: number | undefined;
  for (const statement of text.split(/[;\n]/)) {
    const isBackground = statement.trimEnd().endsWith('&');
    const words = wordsOf(statement.trimEnd().replace(/&$/, ''), state.env);
    const [name, value = ''] = words;
    if (name === undefined) continue;
    if (name === 'exit') return { exitCode: Number(value), isOver: true };
    if (name === 'end-in') {
      endsInMs = Number(value);
    } else if (name === 'cd') {
      state.cwd = value.startsWith('/') ? value : `${state.cwd}/${value}`;
      exitCode = 0;
    } else if (name === 'export' || /^[A-Za-z_]\w*=/.test(name)) {
      assign(state, name === 'export' ? value : name);
      exitCode = 0;
    } else {
      system.killed.throwIfAborted();
      const here = { ...setting, env: state.env, cwd: state.cwd };
      exitCode = await codeOf(startProgram(here, words), isBackground, system);
    }
  }
  return { exitCode, isOver: false, endsInMs };
}

function assign(state: ShellState, text: string): void {
  const at = text.indexOf('=');
  if (at > 0) state.env.set(text.slice(0, at), text.slice(at + 1));
}

async function codeOf(
  process: SimProcess | undefined,
  isBackground: boolean,
  system: ProcessSystem,
): Promise<number> {
  if (process === undefined) return NOT_FOUND;
  if (isBackground) return 0;
  const end = await system.wait(process.ended);
  return end.exitCode ?? SIGNALLED + end.signal;
}

/** Single quotes keep everything; double quotes keep all but `$NAME`. */
function wordsOf(statement: string, env: ReadonlyMap<string, string>): string[] {
  const words: string[] = [];
  const expand = (part: string) =>
    part.replace(/\$([A-Za-z_]\w*)/g, (_, name: string) => env.get(name) ?? '');
  for (const [word] of statement.matchAll(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g)) {
    words.push(
      word.replace(/'([^']*)'|"([^"]*)"|([^'"]+)/g, (_, single, double, plain) =>
        single !== undefined ? single : expand(double ?? plain),
      ),
    );
  }
  return words;
}
