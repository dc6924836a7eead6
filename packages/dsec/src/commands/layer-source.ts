import { resolve } from 'node:path';
import { IMPORT_LIMITS_DEFAULT, type ImportLimits, type ImportSource } from '@dsec/layers';
import { DsecError } from '@dsec/std';
import { type Flags, textFlag } from '../command-line/invocation.ts';

export interface SourceOptions {
  readonly type: string;
  readonly platform?: string;
  readonly reference?: string;
  readonly overlayUpper?: boolean;
}

export function sourceOptionsOf(flags: Flags): SourceOptions {
  const [platform, reference] = [textFlag(flags, 'platform'), textFlag(flags, 'reference')];
  return {
    type: textFlag(flags, 'type') ?? 'auto',
    ...(platform === undefined ? {} : { platform }),
    ...(reference === undefined ? {} : { reference }),
    overlayUpper: flags.overlayUpper === true,
  };
}

/** What `dsec layer import` reads: standard input for `-`, else the path, as the type says. */
export function importSourceOf(path: string, options: SourceOptions): ImportSource {
  if (path === '') throw new DsecError('invalid-argument', 'the source is empty');
  if (path === '-') {
    if (options.type !== 'auto' && options.type !== 'tar') {
      throw new DsecError('invalid-argument', 'only a tar can be read from standard input');
    }
    return { kind: 'tar', fd: 0 };
  }
  const image = {
    ...(options.platform === undefined ? {} : { platform: options.platform }),
    ...(options.reference === undefined ? {} : { reference: options.reference }),
  };
  const directory = options.overlayUpper === true ? { overlayUpper: 'trusted' as const } : {};
  const base = { path: resolve(path) };
  switch (options.type) {
    case 'auto':
      return options.overlayUpper === true
        ? { kind: 'directory', ...base, ...directory }
        : { kind: 'auto', ...base, ...image };
    case 'tar':
      return { kind: 'tar', ...base };
    case 'directory':
      return { kind: 'directory', ...base, ...directory };
    case 'oci-layout':
    case 'docker-archive':
      return { kind: options.type, ...base, ...image };
    default:
      throw new DsecError(
        'invalid-argument',
        '--type is one of auto, tar, directory, oci-layout, docker-archive',
      );
  }
}

/** Parses `name=value` pairs; the names are those of the import limits, the values whole numbers. */
export function importLimitsOf(pairs: readonly string[]): Partial<ImportLimits> {
  const limits: Record<string, number> = {};
  for (const pair of pairs) {
    const [name = '', text = ''] = pair.split('=', 2);
    if (!Object.hasOwn(IMPORT_LIMITS_DEFAULT, name)) {
      const names = Object.keys(IMPORT_LIMITS_DEFAULT).join(', ');
      throw new DsecError('invalid-argument', `--limit takes name=value; the names are ${names}`);
    }
    const value = Number(text);
    if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(value)) {
      throw new DsecError('invalid-argument', `--limit ${name} takes a whole number`);
    }
    limits[name] = value;
  }
  return limits;
}
