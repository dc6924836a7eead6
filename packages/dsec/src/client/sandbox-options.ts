import type { SandboxOptions } from '@dsec/libdsec';
import { type PolicyChoice, STAGES, type Stage } from '@dsec/protocol';
import { DsecError, MINUTE_MS } from '@dsec/std';
import { type Flags, listFlag, textFlag } from '../command-line/invocation.ts';
import { readPolicy } from '../policy-source.ts';
import { parseBytes, parseCount, parseDurationMs, parsePairs } from './quantities.ts';

/** A sandbox that we are to stop ends by itself so soon after we are gone. */
const ORPHAN_MS = 2 * MINUTE_MS;
const MILLICORES = 1000;

/** What the options of `dsec run` say of the sandbox. */
export function createOptionsOf(flags: Flags): SandboxOptions {
  const environment = textFlag(flags, 'env');
  const layers = listFlag(flags, 'layer');
  if ((environment === undefined) === (layers.length === 0)) {
    throw new DsecError(
      'invalid-argument',
      'say what the sandbox is made of: --env NAME, or --layer REF once or more (dsec env ls and ' +
        'dsec layer ls list them)',
    );
  }
  const labels = listFlag(flags, 'label');
  const variables = listFlag(flags, 'var');
  const watchPaths = listFlag(flags, 'watchPath');
  return {
    ...(environment === undefined ? { layers } : { environment }),
    ...(labels.length === 0 ? {} : { labels: parsePairs(labels, '--label') }),
    ...(variables.length === 0 ? {} : { env: parsePairs(variables, '--var') }),
    ...(watchPaths.length === 0 ? {} : { watchPaths }),
    ...given(flags, 'policy', 'policy', choiceOf),
    ...given(flags, 'stage', 'stage', parseStage),
    ...given(flags, 'job', 'job', (text) => text),
    ...given(flags, 'user', 'user', (text) => text),
    ...given(flags, 'cwd', 'cwd', (text) => text),
    ...limitsOf(flags),
    ...ttlOf(flags),
  };
}

/** A profile goes by its name: the node knows it. */
const choiceOf = (source: string): PolicyChoice =>
  /^profile:[a-z0-9._-]+$/.test(source) ? source.slice('profile:'.length) : readPolicy(source);

function parseStage(text: string): Stage {
  const stage = STAGES.find((known) => known === text);
  if (stage !== undefined) return stage;
  throw new DsecError('invalid-argument', `--stage is one of ${STAGES.join(', ')}`);
}

function limitsOf(flags: Flags): Pick<SandboxOptions, 'limits'> {
  const limits = {
    ...given(flags, 'cpus', 'cpuMillicores', parseMillicores),
    ...given(flags, 'memory', 'memoryBytes', (text) => parseBytes(text, '--memory')),
    ...given(flags, 'disk', 'diskBytes', (text) => parseBytes(text, '--disk')),
    ...given(flags, 'pids', 'pidsMax', (text) => parseCount(text, '--pids', 8, 4_194_304)),
  };
  return Object.keys(limits).length === 0 ? {} : { limits };
}

function ttlOf(flags: Flags): Pick<SandboxOptions, 'ttl'> {
  const ttl = {
    ...given(flags, 'ttl', 'lifetimeMs', (text) => parseDurationMs(text, '--ttl')),
    ...(flags.keep === true ? {} : { idleMs: ORPHAN_MS }),
  };
  return Object.keys(ttl).length === 0 ? {} : { ttl };
}

function parseMillicores(text: string): number {
  const cpus = Number(text);
  const millicores = Math.round(cpus * MILLICORES);
  if (/^\d{1,4}(\.\d{1,3})?$/.test(text) && millicores >= 10) return millicores;
  throw new DsecError('invalid-argument', '--cpus takes a number of processors such as 2 or 0.5');
}

function given<K extends string, T>(
  flags: Flags,
  flag: string,
  key: K,
  parse: (text: string) => T,
): { [key in K]?: T } {
  const text = textFlag(flags, flag);
  return text === undefined ? {} : ({ [key]: parse(text) } as { [key in K]?: T });
}
