/** Plays scenarios with the TypeScript SDK. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import * as library from '@dsec/libdsec';
import {
  camelCase,
  memberOf,
  type Scenario,
  type Step,
  snakeCase,
  TABLE,
} from './scenario-table.ts';
import {
  isInstance,
  lookUp,
  mismatch,
  optionsOf,
  type Variables,
  valueIn,
} from './scenario-values.ts';

/** What the server that scenarios are played against has; see spec/scenarios.md. */
export interface ScenarioVariables {
  readonly url: string;
  readonly api_key: string;
  readonly environment: string;
  readonly layer: string;
  readonly tar: string;
  readonly backend: 'sim' | 'container';
}

const AGAIN_MS = 200;
let played = 0;

/** Plays a scenario to its end. Throws what was not as expected, and names the step. */
export async function playScenario(scenario: Scenario, given: ScenarioVariables): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), 'dsec-scenario-'));
  const client = new library.Client({ url: given.url, apiKey: given.api_key });
  played += 1;
  const variables: Variables = new Map<string, unknown>([
    ...Object.entries(given),
    ['client', client],
    ['directory', directory],
    ['unique', `ts-${process.pid}-${played}`],
    ['program', TABLE.programs[given.backend]],
  ]);
  try {
    await play(variables, scenario.steps, '');
  } finally {
    await client.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

async function play(variables: Variables, steps: readonly Step[], above: string): Promise<void> {
  for (const [index, step] of steps.entries()) {
    const place = `${above}${index}`;
    try {
      await playStep(variables, step, place);
    } catch (cause) {
      if (cause instanceof Unexpected) throw cause;
      throw new Unexpected(`step ${place} (${nameOf(step)}): ${String(cause)}`, { cause });
    }
  }
}

class Unexpected extends Error {}

/**
 * The public members of the library's classes as the table names them. Fields are found as accessors or
 * on an instance.
 */
export function namesOfSurface(classes: readonly string[]): Record<string, string[]> {
  const named = classes.map((name) => {
    const type = (library as Record<string, unknown>)[name] as { prototype: object };
    const statics = membersOf(type).filter(({ isMethod }) => isMethod);
    const fields = Object.keys(FIELDS[name] ?? {}).map((field) => ({
      name: field,
      isMethod: false,
    }));
    const members = [...membersOf(type.prototype), ...statics, ...fields];
    const shown = members.map(({ name, isMethod }) => snakeCase(name) + (isMethod ? '()' : ''));
    return [name, [...new Set(shown)].sort()] as const;
  });
  return Object.fromEntries(named);
}

/** Instances of the classes that have fields of their own. No connection is made. */
const FIELDS: Readonly<Record<string, object>> = {
  Client: new library.Client({ url: 'http://127.0.0.1:1', apiKey: 'dsec_none' }),
  Sandbox: { files: undefined },
  SandboxFailure: { index: undefined, error: undefined },
};

function membersOf(holder: object): { readonly name: string; readonly isMethod: boolean }[] {
  return Object.entries(Object.getOwnPropertyDescriptors(holder))
    .filter(([name]) => !['constructor', 'prototype', 'length', 'name'].includes(name))
    .map(([name, { value }]) => ({ name, isMethod: typeof value === 'function' }));
}

const nameOf = (step: Step) =>
  step.call ?? step.get ?? step.with ?? step.end ?? Object.keys(step)[0];

async function playStep(variables: Variables, step: Step, place: string): Promise<void> {
  if (step.with !== undefined) return playWith(variables, step, place);
  if (step.repeat !== undefined) return playRepeated(variables, step, place);
  if (step.begin !== undefined) {
    const pending = evaluate(variables, step.begin);
    const begun: Begun = { pending, isOver: false };
    const over = () => {
      begun.isOver = true;
    };
    pending.then(over, over);
    variables.set(step.save ?? '', begun);
    return;
  }
  const endMs = performance.now() + (step.within ?? 0) * 1000;
  for (;;) {
    try {
      return await playOnce(variables, step);
    } catch (thrown) {
      if (performance.now() >= endMs) throw thrown;
      await setTimeout(AGAIN_MS);
    }
  }
}

interface Begun {
  readonly pending: Promise<unknown>;
  isOver: boolean;
}

async function playOnce(variables: Variables, step: Step): Promise<void> {
  let result: unknown;
  try {
    result = await evaluate(variables, step);
  } catch (thrown) {
    if (step.error === undefined) throw thrown;
    return checkError(variables, thrown, step.error);
  }
  if (step.error !== undefined)
    throw new Error(`succeeded instead of ${JSON.stringify(step.error)}`);
  if (step.save !== undefined) variables.set(step.save, result);
  if (step.expect === undefined) return;
  const problem = mismatch(variables, result, step.expect);
  if (problem !== undefined) throw new Error(problem);
}

function checkError(variables: Variables, thrown: unknown, wanted: Record<string, unknown>): void {
  const { class: name, ...fields } = wanted;
  if (name !== undefined && !isInstance(thrown, String(name))) {
    throw new Error(`${String(thrown)} instead of ${name}`, { cause: thrown });
  }
  const problem = mismatch(variables, thrown, fields);
  if (problem !== undefined) throw new Error(`of the error ${problem}`, { cause: thrown });
}

async function playWith(variables: Variables, step: Step, place: string): Promise<void> {
  await using _ = variables.get(step.with ?? '') as AsyncDisposable;
  await play(variables, step.steps ?? [], `${place}.`);
}

async function playRepeated(variables: Variables, step: Step, place: string): Promise<void> {
  const begun = variables.get(step.until ?? '') as Begun;
  for (let count = 0; count < (step.repeat ?? 0) && !begun.isOver; count += 1) {
    await play(variables, step.steps ?? [], `${place}.`);
  }
}

async function evaluate(variables: Variables, step: Step): Promise<unknown> {
  if (step.end !== undefined) return (variables.get(step.end) as Begun).pending;
  if (step.write_local !== undefined) {
    const path = String(valueIn(variables, step.write_local));
    return writeFileSync(path, valueIn(variables, step.data) as string | Uint8Array);
  }
  if (step.read_local !== undefined) {
    return readFileSync(String(valueIn(variables, step.read_local)));
  }
  const value =
    step.call === undefined ? lookUp(variables, step.get ?? '') : await call(variables, step);
  return step.take === undefined ? value : take(value as AsyncIterable<unknown>, step.take);
}

async function call(variables: Variables, step: Step): Promise<unknown> {
  const path = (step.call ?? '').split('.');
  const args = (step.args ?? []).map((value) => valueIn(variables, value));
  if (step.options !== undefined) args.push(optionsOf(variables, step.options));
  const isOfLibrary = /^[A-Z]/.test(step.call ?? '');
  const root = isOfLibrary ? (library as unknown) : Object.fromEntries(variables);
  const name = camelCase(path.at(-1) ?? '');
  const holder = path.slice(0, -1).reduce(memberOf, root) as Record<string, unknown>;
  if (isOfLibrary && path.length === 1) {
    return Reflect.construct(holder[name] as new () => object, args);
  }
  const method = holder?.[name];
  if (typeof method !== 'function') throw new Error(`there is no method ${path.join('.')}`);
  return await Reflect.apply(method, holder, args);
}

async function take(items: AsyncIterable<unknown>, how: NonNullable<Step['take']>) {
  if (how === 'all' || typeof how === 'number') {
    const taken: unknown[] = [];
    for await (const item of items) {
      taken.push(item);
      if (taken.length === how) break;
    }
    return taken;
  }
  const streams = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
  for await (const item of items) {
    const chunk = item as library.OutputChunk;
    const isBytes = item instanceof Uint8Array;
    streams[isBytes ? 'stdout' : chunk.stream].push(isBytes ? item : chunk.data);
    if (typeof how === 'object' && Buffer.concat(streams.stdout).includes(how.until)) break;
  }
  const [stdout, stderr] = [Buffer.concat(streams.stdout), Buffer.concat(streams.stderr)];
  if (typeof how === 'object' && !stdout.includes(how.until)) {
    throw new Error(`${stdout.toString()} instead of something with ${how.until}`);
  }
  return how === 'output' ? { stdout, stderr } : stdout;
}
