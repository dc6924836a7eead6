import type { SimFiles } from './files.ts';
import type { Inlet } from './inlet.ts';
import type { Outlet } from './outlet.ts';
import type { ProcessSystem, ProcessTable, SimProcess } from './processes.ts';

/** What a program of a simulated sandbox has. Text is Latin-1, so that any bytes can be names and words. */
export interface ProgramIo {
  readonly args: readonly string[];
  readonly env: ReadonlyMap<string, string>;
  readonly cwd: string;
  /** The next bytes of standard input; undefined at its end. */
  stdin(): Promise<Uint8Array | undefined>;
  readonly stdout: OutputEnd;
  readonly stderr: OutputEnd;
  /** Absent: not on a terminal. */
  readonly terminal: TerminalSize | undefined;
  readonly files: SimFiles;
  readonly system: ProcessSystem;
  /** Starts a program that shares the outputs, in the same tree. */
  spawn(argv: readonly string[]): SimProcess;
}

export interface OutputEnd {
  write(bytes: Uint8Array): Promise<void>;
}

/** Changes when the terminal is resized. */
export interface TerminalSize {
  rows: number;
  columns: number;
}

/** Returns its exit code. */
export type SimProgram = (io: ProgramIo) => Promise<number>;

export type ProgramTable = Readonly<Record<string, SimProgram>>;

/** An output and how many processes hold it: it ends with the last one. */
export interface HeldOutlet {
  readonly outlet: Outlet;
  holders: number;
}

/** What processes of one command, or of one session, share. */
export interface ProgramSetting {
  readonly processes: ProcessTable;
  readonly programs: ProgramTable;
  readonly files: SimFiles;
  readonly env: ReadonlyMap<string, string>;
  readonly cwd: string;
  readonly input: Inlet;
  readonly outputs: { readonly stdout: HeldOutlet; readonly stderr: HeldOutlet };
  readonly terminal: TerminalSize | undefined;
  readonly tree: Set<SimProcess>;
}

/** Starts a program of the table; undefined when there is none of the name. */
export function startProgram(
  setting: ProgramSetting,
  argv: readonly string[],
): SimProcess | undefined {
  const [path = '', ...args] = argv;
  const name = path.slice(path.lastIndexOf('/') + 1);
  const program = Object.hasOwn(setting.programs, name) ? setting.programs[name] : undefined;
  if (program === undefined) return undefined;
  return startBody(setting, name, args, program);
}

export function startBody(
  setting: ProgramSetting,
  name: string,
  args: readonly string[],
  program: SimProgram,
): SimProcess {
  const held = Object.values(setting.outputs);
  const process = setting.processes.start(name, setting.tree, async (system) => {
    try {
      return await program(ioOf(setting, args, system));
    } finally {
      for (const output of held) {
        output.holders -= 1;
        if (output.holders === 0) output.outlet.end();
      }
    }
  });
  for (const output of held) output.holders += 1;
  return process;
}

function ioOf(setting: ProgramSetting, args: readonly string[], system: ProcessSystem): ProgramIo {
  const outputOf = ({ outlet }: HeldOutlet): OutputEnd => ({
    write: (bytes) => system.wait(outlet.write(bytes, system.killed)),
  });
  return {
    args,
    env: setting.env,
    cwd: setting.cwd,
    stdin: () => system.wait(setting.input.read(system.killed)),
    stdout: outputOf(setting.outputs.stdout),
    stderr: outputOf(setting.outputs.stderr),
    terminal: setting.terminal,
    files: setting.files,
    system,
    spawn(argv) {
      system.killed.throwIfAborted();
      const process = startProgram(setting, argv);
      if (process === undefined) throw new Error(`no program ${argv[0]}`);
      return process;
    },
  };
}
