/**
 * The scenario table (spec/scenarios.json), played by every form of the SDK against one server of each
 * backend.
 */
import { execFile } from 'node:child_process';
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compileFirst } from '../../packages/layers/test/support/compiled.ts';
import { type Form, methodsCalled, type Scenario, TABLE } from './scenario-table.ts';
import { type ServerWorld, startServerWorld } from './server-world.ts';
import { namesOfSurface, playScenario } from './typescript-runner.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const PYTHON = join(ROOT, '.venv/bin/python');
const PYTHON_RUNNER = join(ROOT, 'python/tests/run_scenarios.py');
const PYTHON_FORMS = ['python', 'python-async'] as const;
const hasPython = existsSync(PYTHON) && existsSync(PYTHON_RUNNER);
/** For all scenarios of a form. */
const PLAY_MS = 300_000;
const isRoot = process.getuid?.() === 0;

compileFirst(join(ROOT, 'packages/dsec'));

const run = promisify(execFile);

interface Outcome {
  readonly name: string;
  readonly state: 'passed' | 'failed' | 'skipped';
  readonly reason?: string;
}

function scenariosOf(backend: string, form: Form): readonly Scenario[] {
  return TABLE.scenarios.filter(
    ({ backends = [backend], forms = [form] }) =>
      backends.includes(backend) && forms.includes(form),
  );
}

const surfaces = new Map<Form, Readonly<Record<string, readonly string[]>>>();

/** Plays all scenarios in one process, so that Python starts once. */
async function playInPython(world: ServerWorld, form: Form): Promise<Map<string, Outcome>> {
  const file = join(world.state, 'variables.json');
  writeFileSync(file, JSON.stringify(world.variables), { mode: 0o600 });
  const args = [PYTHON_RUNNER, '--form', form, '--variables', file];
  const { stdout } = await run(PYTHON, args, { maxBuffer: 2 ** 24 }).catch((thrown) => thrown);
  const outcomes = new Map<string, Outcome>();
  for (const line of String(stdout).split('\n').filter(Boolean)) {
    const told = JSON.parse(line);
    if (told.surface === undefined) outcomes.set(told.name, told);
    else surfaces.set(form, told.surface);
  }
  return outcomes;
}

describe.each([
  { backend: 'sim', title: 'on the simulated backend' },
  { backend: 'container', title: 'on containers (needs root)' },
] as const)('scenarios $title', ({ backend }) => {
  let world: ServerWorld;
  const isPossible = backend === 'sim' || isRoot;

  beforeAll(async () => {
    if (isPossible) world = await startServerWorld({ backend });
  });

  afterAll(async () => {
    await world?.stop();
  });

  describe.skipIf(!isPossible)('in TypeScript (needs root on containers)', () => {
    it.each(scenariosOf(backend, 'typescript'))('$name', async (scenario) => {
      await playScenario(scenario, world.variables);
    });
  });

  describe.skipIf(!isPossible || !hasPython).each(PYTHON_FORMS)('in %s (needs .venv)', (form) => {
    let played: Promise<ReadonlyMap<string, Outcome>> | undefined;

    it.each(scenariosOf(backend, form))('$name', { timeout: PLAY_MS }, async ({ name }) => {
      played ??= playInPython(world, form);
      expect((await played).get(name)).toMatchObject({ state: 'passed' });
    });
  });
});

describe('the surface of the SDK', () => {
  const expected = Object.entries(TABLE.surface);

  it('is whole in TypeScript', () => {
    const found = namesOfSurface(expected.map(([name]) => name));
    for (const [name, members] of expected) expect.soft(found[name], name).toEqual(members);
  });

  it.skipIf(!hasPython).each(PYTHON_FORMS)('is whole in %s (needs .venv)', (form) => {
    for (const [name, members] of expected) {
      expect.soft(surfaces.get(form)?.[name], name).toEqual(expect.arrayContaining([...members]));
    }
  });

  it('is called by some scenario, each method of it', () => {
    const called = methodsCalled(TABLE.scenarios.flatMap(({ steps }) => steps));
    const methods = expected.flatMap(([, members]) =>
      members.filter((name) => name.endsWith('()')),
    );
    for (const method of methods) expect.soft(called).toContain(method.slice(0, -2));
  });
});
