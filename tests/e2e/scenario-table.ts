/** The form of spec/scenarios.json; spec/scenarios.md says what it means. */
import { readFileSync } from 'node:fs';

export type Form = 'typescript' | 'python' | 'python-async';

export interface Step {
  readonly call?: string;
  readonly get?: string;
  readonly args?: readonly unknown[];
  readonly options?: Readonly<Record<string, unknown>>;
  readonly with?: string;
  readonly begin?: Step;
  readonly end?: string;
  readonly repeat?: number;
  readonly until?: string;
  readonly steps?: readonly Step[];
  readonly write_local?: string;
  readonly data?: unknown;
  readonly read_local?: string;
  readonly take?: 'all' | 'bytes' | 'output' | number | { readonly until: string };
  readonly save?: string;
  readonly expect?: unknown;
  readonly error?: Readonly<Record<string, unknown>>;
  readonly within?: number;
}

export interface Scenario {
  readonly name: string;
  readonly about: string;
  readonly backends?: readonly string[];
  readonly forms?: readonly Form[];
  readonly steps: readonly Step[];
}

export interface ScenarioTable {
  readonly surface: Readonly<Record<string, readonly string[]>>;
  readonly programs: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly scenarios: readonly Scenario[];
}

export const TABLE = JSON.parse(
  readFileSync(new URL('../../spec/scenarios.json', import.meta.url), 'utf8'),
) as ScenarioTable;

/** The names of the methods that steps call, without the variable before them. */
export function methodsCalled(steps: readonly Step[]): ReadonlySet<string> {
  const names = new Set<string>();
  const look = (step: Step) => {
    if (step.call !== undefined) names.add(step.call.slice(step.call.lastIndexOf('.') + 1));
    if (step.begin !== undefined) look(step.begin);
    step.steps?.forEach(look);
  };
  steps.forEach(look);
  return names;
}

/** `create_many` → `createMany`; `import_` is a word of Python's. */
export function camelCase(name: string): string {
  if (name === 'import_') return 'importLayer';
  return name.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

/** The reverse. */
export function snakeCase(name: string): string {
  if (name === 'importLayer') return 'import_';
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** How a field or method is called in TypeScript, in what order soever it is looked up. */
export function memberOf(value: unknown, name: string): unknown {
  if (value === null || value === undefined) return undefined;
  const holder = Object(value) as Record<string, unknown>;
  return name in holder ? holder[name] : holder[camelCase(name)];
}
