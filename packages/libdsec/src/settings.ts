/** Where the server is, and who asks. */
import { accessSync, constants, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import {
  InvalidArgumentError,
  NotFoundError,
  UnauthenticatedError,
  UnavailableError,
} from './errors.ts';
import { present } from './pages.ts';

export interface ServerSettings {
  /** `http://host:port`, or `unix:/path`. */
  readonly url?: string | undefined;
  readonly apiKey?: string | undefined;
  /** Certificates, in PEM, by which the server is known beside those that Node brings along. */
  readonly caFile?: string | undefined;
}

export interface FoundServer {
  readonly url: string;
  readonly apiKey: string;
  readonly caFile?: string;
  /** The client file that the key is from: it is read again when the key is refused. */
  readonly keyFile?: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

const FILE_BYTES_MAX = 65_536;
const HOW =
  'start one with `dsec up`, or set DSEC_URL and DSEC_API_KEY (`dsec key create` makes a key)';

/**
 * What was given, else `DSEC_URL` and `DSEC_API_KEY`, else the first of these files that is there: the one
 * that `DSEC_CLIENT` names, `~/.config/dsec/client.json`, `$DSEC_STATE/client.json`,
 * `/var/lib/dsec/client.json`. The key of a file is only ever sent to the server of that file. Throws
 * `unavailable` when no server is known, `unauthenticated` when there is no key for it.
 */
export function findServer(given: ServerSettings, env: Environment = process.env): FoundServer {
  const url = given.url ?? env.DSEC_URL;
  const apiKey = given.apiKey ?? env.DSEC_API_KEY;
  const caFile = given.caFile ?? env.DSEC_CA_FILE;
  if (url !== undefined && apiKey !== undefined) return present({ url, apiKey, caFile });
  const file = readClientFile(env);
  if (url === undefined && file === undefined) {
    throw new UnavailableError('unavailable', `no server is known${denied(env)}: ${HOW}`);
  }
  const known = file !== undefined && (url === undefined || url === file.url) ? file : undefined;
  const key = apiKey ?? known?.apiKey;
  const server = url ?? known?.url;
  if (server === undefined || key === undefined) {
    throw new UnauthenticatedError(
      'unauthenticated',
      `there is no key for ${url}: set DSEC_API_KEY`,
    );
  }
  return present({
    ...{ url: server, apiKey: key, caFile: caFile ?? known?.caFile },
    keyFile: apiKey === undefined ? known?.path : undefined,
  });
}

/** The key that a client file holds now for a server; `undefined` where it has none. */
export function keyFromFile(path: string, url: string): string | undefined {
  const text = readOptional(path);
  try {
    const file = text === undefined ? undefined : parseClientFile(path, text);
    return file?.url === url ? file.apiKey : undefined;
  } catch {
    // It is just being written by somebody who does not replace it as a whole.
    return undefined;
  }
}

function usualFiles(env: Environment): readonly string[] {
  return [
    join(homedir(), '.config/dsec/client.json'),
    ...(env.DSEC_STATE === undefined ? [] : [join(env.DSEC_STATE, 'client.json')]),
    '/var/lib/dsec/client.json',
  ];
}

/** Says that there may be a server, whose client file is another user's. */
function denied(env: Environment): string {
  const path = usualFiles(env).find((file) => {
    try {
      accessSync(file, constants.R_OK);
      return false;
    } catch (thrown) {
      const { code = '' } = thrown as NodeJS.ErrnoException;
      return !['ENOENT', 'ENOTDIR'].includes(code);
    }
  });
  return path === undefined ? '' : ` (${path} cannot be read by this user)`;
}

function readClientFile(env: Environment) {
  const named = env.DSEC_CLIENT;
  for (const path of named === undefined ? usualFiles(env) : [named]) {
    const text = readOptional(path);
    if (text !== undefined) return parseClientFile(path, text);
  }
  if (named === undefined) return undefined;
  throw new NotFoundError('not-found', `${named}, which DSEC_CLIENT names, cannot be read`);
}

function readOptional(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // Not there, or another user's.
    return undefined;
  }
}

interface ClientFile extends FoundServer {
  readonly path: string;
}

function parseClientFile(path: string, text: string): ClientFile {
  const problem = 'is not {"url": "…", "apiKey": "…"}';
  let value: { url?: unknown; apiKey?: unknown; caFile?: unknown } | undefined;
  try {
    if (text.length <= FILE_BYTES_MAX) value = JSON.parse(text);
  } catch {
    // Its text holds a secret, so the parser's words are not repeated.
  }
  if (typeof value?.url === 'string' && typeof value.apiKey === 'string') {
    const { url, apiKey } = value;
    const caFile = typeof value.caFile === 'string' ? value.caFile : undefined;
    return present({ path, url, apiKey, caFile });
  }
  throw new InvalidArgumentError('invalid-argument', `${path} ${problem}`);
}
