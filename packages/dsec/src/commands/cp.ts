import { realpath, stat } from 'node:fs/promises';
import type { Client, Files } from '@dsec/libdsec';
import { asDsecError, DsecError } from '@dsec/std';
import { withClient } from '../client/connect.ts';
import { download, downloadToStdout, parentOf, targetName } from '../client/copy/download.ts';
import { openLocalDirectory } from '../client/copy/local-directory.ts';
import { argumentBytes, baseName, joinPath, type Place, placeOf } from '../client/copy/place.ts';
import { createTally, describeCopy, type Tally } from '../client/copy/tally.ts';
import { upload, uploadStdin } from '../client/copy/upload.ts';
import type { Invocation } from '../command-line/invocation.ts';
import { printJson } from '../output.ts';
import { withInterrupt } from './interrupt.ts';

export async function run({ args, json, settings }: Invocation): Promise<void> {
  const [source, target] = argumentBytes(args).map(placeOf);
  const pair = source === undefined || target === undefined ? undefined : { source, target };
  if (pair === undefined || (pair.source.kind === 'sandbox') === (pair.target.kind === 'sandbox')) {
    throw new DsecError(
      'invalid-argument',
      'one of the two is in a sandbox, as sb-…:/path, and the other is here',
    );
  }
  await withClient(settings, (client) =>
    withInterrupt(async (signal) => {
      const { tally, work } = await copyOf(client, pair, signal);
      await work().finally(() => tally.finish());
      if (json) printJson(tally.result);
      else process.stderr.write(`${describeCopy(tally.result)}\n`);
    }),
  );
}

interface Pair {
  readonly source: Place;
  readonly target: Place;
}

interface Copy {
  readonly tally: Tally;
  work(): Promise<void>;
}

async function copyOf(
  client: Client,
  { source, target }: Pair,
  signal: AbortSignal,
): Promise<Copy> {
  if (source.kind === 'sandbox') {
    const { files } = await client.get(source.sandboxId, { signal });
    const entry = await files.stat(source.path, { signal });
    const tally = createTally('copy', entry.kind === 'file' ? entry.sizeBytes : undefined);
    const how = { tally, signal };
    if (target.kind !== 'local') {
      return { tally, work: () => downloadToStdout(files, source.path, how) };
    }
    return { tally, work: () => takeTo(files, source.path, target.path, how) };
  }
  if (target.kind !== 'sandbox') throw new DsecError('internal', 'neither side is in a sandbox');
  const { files } = await client.get(target.sandboxId, { signal });
  if (source.kind === 'stream') {
    const tally = createTally('copy', undefined);
    return { tally, work: () => uploadStdin(files, target.path, { tally, signal }) };
  }
  const local = await stat(source.path).catch((thrown) => {
    throw asDsecError(thrown);
  });
  const tally = createTally('copy', local.isFile() ? local.size : undefined);
  return { tally, work: () => giveTo(files, source.path, target.path, { tally, signal }) };
}

interface How {
  readonly tally: Tally;
  readonly signal: AbortSignal;
}

async function takeTo(files: Files, source: Buffer, target: Buffer, how: How): Promise<void> {
  const isDirectory = await isLocalDirectory(target);
  if (!isDirectory && target.at(-1) === SLASH) throw noDirectory(target);
  const { parent, name } = targetName(source, isDirectory, target);
  const directory = await openLocalDirectory(parent);
  try {
    await download(files, source, { directory, name }, how);
  } finally {
    await directory.close();
  }
}

async function giveTo(files: Files, source: Buffer, target: Buffer, how: How): Promise<void> {
  const isDirectory = await isRemoteDirectory(files, target, how.signal);
  if (!isDirectory && target.at(-1) === SLASH) throw noDirectory(target);
  // What is typed may be a link, or a dot; what is below it is taken as it is.
  const real = (await realpath(source, { encoding: 'buffer' })) as Buffer;
  const name = isDotted(source) ? baseName(real) : baseName(source);
  const path = isDirectory ? joinPath(target, name) : target;
  const directory = await openLocalDirectory(parentOf(real));
  try {
    await upload(files, { directory, name: baseName(real) }, path, how);
  } finally {
    await directory.close();
  }
}

const SLASH = 0x2f;
const isDotted = (path: Buffer) => /(^|\/)\.{1,2}\/*$/.test(path.toString('latin1'));

function noDirectory(path: Buffer): DsecError {
  return new DsecError('not-found', `there is no directory ${path.toString('utf8')}`);
}

async function isLocalDirectory(path: Buffer): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true;
}

async function isRemoteDirectory(
  files: Files,
  path: Buffer,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    return (await files.stat(path, { signal })).kind === 'directory';
  } catch (thrown) {
    if (thrown instanceof DsecError && thrown.code === 'not-found') return false;
    throw thrown;
  }
}
