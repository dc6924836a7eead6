import { ERROR_CODES, type ErrorCode } from './codes.ts';

type Remedies = Readonly<Partial<Record<ErrorCode, string>>>;

/**
 * What the caller can do about an error whose `details.about` says what it is about, where that is more than
 * the row of its code says.
 */
export const REMEDIES = {
  user: {
    'not-found':
      "Use a numeric id, or a user and group of the sandbox's own /etc/passwd and /etc/group.",
  },
  'working-directory': {
    'not-found': 'Make that directory first, or name one that the sandbox has.',
    'permission-denied':
      'Name a directory that the user of the command may enter, or another user.',
    'invalid-argument': 'Name a directory; something else is at that path, or a loop of links.',
  },
  command: {
    'command-not-found':
      'Give the full path, correct PATH, or add the program; a script needs the interpreter of its #! line.',
    'permission-denied':
      'Make the file executable for the user of the command, or pass it to its interpreter.',
    'invalid-argument':
      'The file is no program for this machine; a script needs a #! line, or pass it to its interpreter.',
    'state-conflict': 'The program is open for writing; close it first.',
    'too-large': 'Pass fewer or shorter arguments and variables; a file takes more.',
  },
  path: {
    'not-found':
      "Check the path: a relative one starts at the sandbox's working directory; list its parent.",
    'permission-denied':
      'Ask as a user who may, and where the file system of the sandbox can be written.',
    'already-exists': 'Choose another path, or remove what is there first.',
    'invalid-argument':
      'Look at each part of the path with stat: a directory is missing, in the way, or in a loop of links.',
    'state-conflict': 'It is in use, or a directory that is not empty: remove that recursively.',
    'too-large': 'The file is larger than the sandbox allows; raise its limits or write less.',
    'storage-full': 'Remove something in the sandbox, or create one with a larger disk limit.',
    unsupported: 'That cannot be done across two file systems, or to this kind of file.',
  },
  host: {
    'permission-denied':
      'Ask for localhost or 127.0.0.1, or allow the name: `dsec apiserver --allow-host NAME`.',
  },
  origin: {
    'permission-denied':
      'Call from a program, which sends no Origin; pages in a browser are not let in.',
  },
  'content-type': {
    'invalid-argument': 'Send the header Content-Type: application/json, and JSON as the body.',
  },
  layer: {
    'not-found': 'Import the layer first, or choose one that `dsec layer ls` lists.',
  },
  environment: {
    'not-found': 'Make it with `dsec env create`, or choose one that `dsec env ls` lists.',
    'already-exists':
      'Choose another name, or replace it: `dsec env create --replace`, or a put without revision 0.',
    conflict: 'Read the environment again, and put the change with the revision that it has now.',
  },
} as const satisfies Readonly<Record<string, Remedies>>;

export type ErrorTopic = keyof typeof REMEDIES;

/** What to do about an error of a code, as far as is known what it is about. */
export function remedyOf(code: ErrorCode, about: unknown): string {
  const isKnown = typeof about === 'string' && Object.hasOwn(REMEDIES, about);
  const own: Remedies = isKnown ? REMEDIES[about as ErrorTopic] : {};
  return own[code] ?? ERROR_CODES[code].remedy;
}
