/**
 * A solution, read from the solver's sandbox and written as the records that the platform's runner applies
 * (`native/runner/apply.c`). Bounded in entries, depth and bytes whatever the solver has made.
 */
import type { FileEntry, GradeReport } from '@dsec/protocol';
import { DsecError, MIB } from '@dsec/std';
import type { SandboxAccess } from './sandbox-access.ts';
import {
  checkPath,
  type LeftReason,
  outermost,
  RUNS_BY_ITSELF,
  reasonToLeave,
  type SolutionRules,
} from './solution-rules.ts';

export interface SolutionRequest {
  readonly solutionPaths: readonly string[];
  readonly testPaths: readonly string[];
  readonly fullState: boolean;
  readonly entriesMax: number;
  readonly bytesMax: number;
}

export type SolutionTally = Pick<GradeReport, 'taken' | 'left' | 'leftCount'>;

export interface Solution {
  readonly records: AsyncGenerator<Uint8Array>;
  /** Complete when the records have ended. */
  readonly tally: SolutionTally;
}

const DEPTH_MAX = 100;
const PATH_BYTES_MAX = 4000;
const LEFT_SHOWN_MAX = 200;
/** Entries looked at for one that is taken: a solver must not keep a grader busy with what is left. */
const LOOKED_AT_FACTOR = 4;
/** A longer file is passed on as it comes, and must not change meanwhile. */
const KEPT_BYTES_MAX = 4 * MIB;

/** What the request says of paths, checked. Throws `invalid-argument`. */
export function checkSolution(request: SolutionRequest): SolutionRequest {
  const solutionPaths = request.solutionPaths.map((path) => checkPath(path, 'solutionPaths'));
  const testPaths = request.testPaths.map((path) => checkPath(path, 'testPaths'));
  return { ...request, solutionPaths: outermost(solutionPaths), testPaths };
}

export function collectSolution(access: SandboxAccess, request: SolutionRequest): Solution {
  const left: { path: string; reason: LeftReason }[] = [];
  const tally = { taken: { files: 0, directories: 0, links: 0, bytes: 0 }, left, leftCount: 0 };
  return { records: records(access, request, tally), tally };
}

interface Walk {
  readonly access: SandboxAccess;
  readonly request: SolutionRequest;
  readonly tally: { -readonly [K in keyof SolutionTally]: SolutionTally[K] };
  seen: number;
}

async function* records(
  access: SandboxAccess,
  request: SolutionRequest,
  tally: Walk['tally'],
): AsyncGenerator<Uint8Array> {
  const { solutionPaths, testPaths, fullState } = request;
  const walk: Walk = { access, request, tally, seen: 0 };
  if (!fullState) {
    for (const path of testPaths) yield record('K', path);
    for (const pattern of RUNS_BY_ITSELF) yield record('N', pattern);
  }
  for (const root of solutionPaths) {
    const rules = { root, testPaths, fullState };
    const entry = await access.stat(root);
    const reason = entry === undefined ? undefined : rootReason(root, entry, rules);
    if (reason !== undefined) {
      leave(walk, root, reason);
      continue;
    }
    // What is not there any more has been removed, and so it is again.
    yield record('C', root);
    if (entry !== undefined) yield* tree(walk, root, entry, rules);
  }
  yield Buffer.from('E');
}

/** A solution path that has become a link would make another tree the solution. */
function rootReason(root: string, entry: FileEntry, rules: SolutionRules): LeftReason | undefined {
  if (entry.kind === 'symlink') return 'kind';
  return reasonToLeave(root, entry, rules);
}

async function* tree(
  walk: Walk,
  root: string,
  first: FileEntry,
  rules: SolutionRules,
): AsyncGenerator<Uint8Array> {
  const waiting: { path: string; depth: number }[] = [];
  yield* take(walk, root, first);
  if (first.kind === 'directory') waiting.push({ path: root, depth: 1 });
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { path: directory, depth } = next;
    if (depth > DEPTH_MAX) throw tooLarge(`deeper than ${DEPTH_MAX} directories`);
    for await (const entry of entriesOf(walk, directory)) {
      const path = `${directory}/${entry.name}`;
      look(walk, path);
      const reason = reasonToLeave(path, entry, rules);
      if (reason !== undefined) {
        leave(walk, path, reason);
        continue;
      }
      yield* take(walk, path, entry);
      if (entry.kind === 'directory') waiting.push({ path, depth: depth + 1 });
    }
  }
}

/** A directory that is gone when its turn comes has nothing in it. */
async function* entriesOf({ access }: Walk, path: string): AsyncGenerator<FileEntry> {
  try {
    yield* access.list(path);
  } catch (thrown) {
    if ((thrown as DsecError).code !== 'not-found') throw thrown;
  }
}

function look(walk: Walk, path: string): void {
  const { entriesMax } = walk.request;
  walk.seen += 1;
  if (walk.seen > entriesMax * LOOKED_AT_FACTOR) throw tooLarge(`more than ${entriesMax} entries`);
  if (Buffer.byteLength(path) > PATH_BYTES_MAX) throw tooLarge('a path that is too long');
}

function leave({ tally }: Walk, path: string, reason: LeftReason): void {
  tally.leftCount += 1;
  if (tally.left.length < LEFT_SHOWN_MAX) tally.left.push({ path, reason });
}

async function* take(walk: Walk, path: string, entry: FileEntry): AsyncGenerator<Uint8Array> {
  const { taken } = walk.tally;
  const { entriesMax } = walk.request;
  if (taken.files + taken.directories + taken.links >= entriesMax) {
    throw tooLarge(`more than ${entriesMax} entries`);
  }
  const counts = taken as { -readonly [K in keyof typeof taken]: number };
  if (entry.kind === 'directory') {
    counts.directories += 1;
    yield record('D', path, u32(entry.mode & 0o777));
  } else if (entry.kind === 'symlink') {
    counts.links += 1;
    yield record('L', path, text(entry.symlinkTarget ?? ''));
  } else {
    counts.files += 1;
    yield* file(walk, path, entry);
  }
}

async function* file(walk: Walk, path: string, entry: FileEntry): AsyncGenerator<Uint8Array> {
  const taken = walk.tally.taken as { bytes: number };
  const { sizeBytes } = entry;
  taken.bytes += sizeBytes;
  if (taken.bytes > walk.request.bytesMax) {
    throw tooLarge(`more than ${walk.request.bytesMax} bytes`);
  }
  const mode = u32(entry.mode & 0o777);
  if (sizeBytes === 0) return yield record('F', path, mode, u64(0));
  const body = await walk.access.read(path, sizeBytes);
  if (sizeBytes <= KEPT_BYTES_MAX) {
    const pieces: Uint8Array[] = [];
    for await (const piece of body) pieces.push(piece);
    const whole = Buffer.concat(pieces);
    return yield Buffer.concat([record('F', path, mode, u64(whole.length)), whole]);
  }
  yield record('F', path, mode, u64(sizeBytes));
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    yield piece;
  }
  if (bytes === sizeBytes) return;
  throw new DsecError(
    'state-conflict',
    `${path} has changed while it was read: stop what writes it`,
  );
}

function tooLarge(what: string): DsecError {
  return new DsecError('too-large', `the solution has ${what}; name fewer paths, or allow more`);
}

const u32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};

const u64 = (value: number) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
};

const text = (value: string) => {
  const bytes = Buffer.from(value);
  return Buffer.concat([u32(bytes.length), bytes]);
};

const record = (kind: string, path: string, ...rest: readonly Buffer[]) =>
  Buffer.concat([Buffer.from(kind), text(path), ...rest]);
