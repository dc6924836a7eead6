/**
 * What a call was about, for its errors: what a sandbox says of a failure (`command: No such file or
 * directory`) does not repeat the names that it was given.
 */
import type { Exec, ExecSpec } from '@dsec/protocol';
import { type DsecError, escapeForTerminal } from '@dsec/std';

export interface Asked {
  readonly sandbox?: string | undefined;
  readonly key?: string | undefined;
  /** A path in a sandbox; of a move both. */
  readonly path?: string | undefined;
  readonly program?: string | undefined;
  readonly cwd?: string | undefined;
  readonly user?: string | undefined;
}

/** As far as a call is looked at. */
interface Input {
  readonly params?: object;
  readonly query?: object;
  readonly body?: unknown;
}

const SHOWN_LENGTH = 200;

/** The names in what is sent to a server. */
export function askedOf(input: Input): Asked {
  const isRecord = typeof input.body === 'object' && input.body?.constructor === Object;
  const { sandboxId, keyId, path, source, target, cwd, user, argv, shell, session } = {
    ...(isRecord ? input.body : {}),
    ...input.query,
    ...input.params,
  } as Readonly<Record<string, unknown>>;
  const move = typeof source === 'string' && typeof target === 'string' ? [source, target] : [];
  return {
    ...{ sandbox: textOf(sandboxId), key: textOf(keyId), cwd: textOf(cwd), user: textOf(user) },
    path: textOf(path) ?? (move.length === 0 ? undefined : move.map(shown).join(' → ')),
    program: programOf(argv, shell, session),
  };
}

/** The same of a command that was started. */
export function askedOfExec({ argv, shell, session, cwd, user }: ExecSpec, exec: Exec): Asked {
  return { sandbox: exec.sandbox, program: programOf(argv, shell, session), cwd, user };
}

function programOf(argv: unknown, shell: unknown, session: unknown): string | undefined {
  if (Array.isArray(argv)) return textOf(argv[0]);
  return shell === undefined || session !== undefined ? undefined : '/bin/sh';
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : undefined);

/** Its message, with what was asked for; escaped, and no longer than can be read. */
export function messageFor({ message, details }: DsecError, asked: Asked): string {
  const { sandbox, key, path, program, cwd, user } = asked;
  const [step = '', ...reason] = message.split(': ');
  const why = reason.join(': ');
  const names = (name: string | undefined): name is string =>
    name !== undefined && name !== '' && !message.includes(name);
  switch (step) {
    case 'there is no such sandbox':
      return names(sandbox) ? `${message}: ${shown(sandbox)}` : message;
    case 'there is no such key':
      return names(key) ? `${message}: ${shown(key)}` : message;
    case 'no such user or group':
      return details.errno === undefined
        ? message
        : user === undefined
          ? step
          : `${step}: ${shown(user)}`;
    case 'command':
      return names(program) ? `${shown(program)}: ${why}` : message;
    case 'working directory':
      return names(cwd) ? `${step} ${shown(cwd)}: ${why}` : message;
    default:
      // Only what the sandbox says of a file has a number of the kernel.
      return details.errno !== undefined && names(path) ? `${shown(path)}: ${message}` : message;
  }
}

function shown(name: string): string {
  const safe = escapeForTerminal(name.slice(0, SHOWN_LENGTH));
  return safe.length < SHOWN_LENGTH ? safe : `${safe.slice(0, SHOWN_LENGTH - 1)}…`;
}
