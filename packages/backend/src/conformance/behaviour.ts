/** What a caller may rely on, whatever runs its sandbox, and the case that shows it on each backend. */
export interface BehaviourRow {
  readonly what: string;
  readonly promise: string;
  /** Its name in the suite. */
  readonly case: string;
}

export const BEHAVIOUR: readonly BehaviourRow[] = [
  {
    what: 'exit codes',
    promise: '0 to 255, each as the command gave it',
    case: 'exit codes 0 to 255',
  },
  {
    what: 'signals',
    promise: 'each that ends a process, by its number; never made a code',
    case: 'signals, each as itself',
  },
  {
    what: 'standard input',
    promise: 'any bytes, then its end; closed from the start unless asked for',
    case: 'standard input of any bytes, to its end',
  },
  {
    what: 'children in the background',
    promise: 'that hold the outputs do not hold back the exit',
    case: 'a child in the background that holds the outputs does not hold the exit',
  },
  {
    what: 'much output',
    promise: '100 MiB without a newline arrive whole, whatever the window',
    case: '100 MiB without a newline, every byte in its place',
  },
  {
    what: 'binary output',
    promise: 'every byte as it was written',
    case: 'output of any bytes',
  },
  {
    what: 'names',
    promise: 'files, directories and arguments of any bytes that Linux has',
    case: 'arguments and directories of any bytes',
  },
  {
    what: 'files',
    promise: 'any name and any bytes, from any offset',
    case: 'files of any name and any bytes',
  },
  {
    what: 'what is missing',
    promise: 'a directory, command or user that is not there is an error of its own',
    case: 'what cannot be started is a clear error',
  },
  {
    what: 'commands at a time',
    promise: '200, each with its own output and code',
    case: '200 commands at a time',
  },
  {
    what: 'terminals',
    promise: 'have the size that was asked for, and follow a change of it',
    case: 'a terminal of the asked size that follows a resize',
  },
  {
    what: 'coming back',
    promise: 'a host that was away goes on at its offset; what it acknowledged is gone',
    case: 'a host that comes back goes on at its offset, and what it has acknowledged is gone',
  },
  {
    what: 'lost connections',
    promise: 'cost no byte, and double none',
    case: 'a stream is whole over connections that are lost anywhere',
  },
  {
    what: 'too much memory',
    promise: 'kills the command and is counted as that; agent and neighbours go on',
    case: 'memory without end kills the command, or ends the sandbox as oom',
  },
  {
    what: 'timeouts',
    promise: 'end every process that the command has left, and return what was printed',
    case: 'a timeout ends the tree and returns what was printed',
  },
  {
    what: 'sessions',
    promise: 'keep directory and variables; their end is told when it comes',
    case: 'the end of a shell that nobody uses is told',
  },
];

/** As the guide shows it. */
export function behaviourTable(): string {
  const rows = BEHAVIOUR.map(
    ({ what, promise, case: name }) => `| ${what} | ${promise} | ${name} |`,
  );
  return ['| | promise | case |', '|---|---|---|', ...rows].join('\n');
}
