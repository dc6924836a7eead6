import { checkCreate, defaultNodePolicy, settleSpec } from '@dsec/edge';
import { check, type SandboxCreate, SandboxSpec } from '@dsec/protocol';
import { type DsecError, parseJobId, parseSandboxId } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { withoutNetwork } from '../src/network/network.ts';
import { createNodePolicies } from '../src/policy/node-policies.ts';
import { CALLER, CREATE, HOST, LAYER } from './core-world.ts';

const { id } = parseSandboxId('sb-s1-e1-abcdefghijklmnop');
const CONTAINER = { kind: 'container' } as const;
const LOOPBACK = withoutNetwork('a test');
const NONE: string[] = [];
const IMAGE = { env: NONE, workdir: '', user: '', entrypoint: NONE, command: NONE };

function settle(
  create: SandboxCreate,
  image: Partial<typeof IMAGE> | null = null,
  caller: typeof CALLER & { mayGrade?: boolean } = CALLER,
) {
  return settleSpec({
    ...{ id, create, caller, backend: CONTAINER, policy: defaultNodePolicy(HOST) },
    policies: createNodePolicies(undefined),
    environment: {
      layers: [{ requested: 'base/t:latest', ref: 'base/t:1.0.0', kind: 'base', layerId: LAYER }],
      image: image === null ? null : { ...IMAGE, ...image },
    },
  });
}

const fieldOf = (work: () => unknown): unknown => {
  try {
    work();
  } catch (thrown) {
    return (thrown as DsecError).details.field;
  }
  return undefined;
};

describe('settleSpec', () => {
  it('leaves nothing open', () => {
    const { spec, plan, defaults, layers, ttl } = settle({ ...CREATE, waitFor: 'allocated' });
    expect(check(SandboxSpec, spec, 'spec')).toEqual(spec);
    expect(spec).not.toHaveProperty('waitFor');
    expect(Object.values(plan.limits).every((limit) => limit > 0)).toBe(true);
    expect(plan).toMatchObject({
      ...{ key: { id, generation: 1 }, hostname: 'abcdefghijklmnop', allowDegraded: false },
      ...{ isolationDomain: 'project/p', requireProtections: [] },
      layers: [{ kind: 'base', layerId: LAYER }],
    });
    expect(defaults).toEqual({ env: {}, user: 'root', cwd: '/' });
    expect(layers).toEqual([{ ref: 'base/t:1.0.0', layerId: LAYER }]);
    expect(ttl.idleMs).toBeGreaterThan(0);
  });

  it('prefers the request to the image, and the image to the node', () => {
    const image = { env: ['A=image', 'B=image', '=x', '1=x'], workdir: '/srv', user: 'app:app' };
    expect(settle(CREATE, image).defaults).toEqual({
      ...{ env: { A: 'image', B: 'image' }, user: 'app:app', cwd: '/srv' },
    });
    const asked = { ...CREATE, env: { B: 'asked' }, user: 'me', cwd: '/home' };
    expect(settle(asked, image).defaults).toEqual({
      ...{ env: { A: 'image', B: 'asked' }, user: 'me', cwd: '/home' },
    });
  });

  it('takes limits up to those of the node', () => {
    expect(settle({ ...CREATE, limits: { pidsMax: 100 } }).plan.limits.pidsMax).toBe(100);
    const greedy = { ...CREATE, limits: { memoryBytes: HOST.memoryTotalBytes + 1 } };
    expect(fieldOf(() => settle(greedy))).toBe('limits.memoryBytes');
  });

  it('takes more processors than there are for all of them', () => {
    const wide = { ...CREATE, limits: { cpuMillicores: 1_024_000 } };
    expect(settle(wide).plan.limits.cpuMillicores).toBe(HOST.cpuCount * 1000);
  });

  it.each([
    ['node', 'node'],
    ['project', 'project/p'],
    ['job', 'job/p/j'],
  ] as const)('isolates by %s', (isolation, domain) => {
    const create = { ...CREATE, isolation, job: 'j' };
    expect(settle(create).plan.isolationDomain).toBe(domain);
  });

  it('makes sandboxes that grade for graders alone', () => {
    const create = { ...CREATE, grading: true };
    expect(() => settle(create)).toThrow(expect.objectContaining({ code: 'permission-denied' }));
    const settled = settle(create, null, { ...CALLER, mayGrade: true });
    expect(settled.plan.tools).toEqual({ platform: true, layers: [] });
    expect(settle(CREATE).plan.tools).toBeUndefined();
  });

  it('takes the job of the caller, and none out of nothing', () => {
    const caller = { ...CALLER, job: parseJobId('theirs') };
    expect(settle({ ...CREATE, isolation: 'job' }, null, caller).spec.job).toBe('theirs');
    expect(fieldOf(() => settle({ ...CREATE, isolation: 'job' }))).toBe('isolation');
  });

  it.each<[string, SandboxCreate, Partial<typeof IMAGE>]>([
    ['env', CREATE, { env: Array.from({ length: 300 }, (_, n) => `V${n}=x`) }],
    ['env', { ...CREATE, env: { A: 'x'.repeat(32_000), B: 'ü'.repeat(20_000) } }, {}],
    ['env', { ...CREATE, env: { A: 'x'.repeat(32_000) } }, { env: [`B=${'x'.repeat(40_000)}`] }],
    ['user', CREATE, { user: 'what is this' }],
    ['cwd', CREATE, { workdir: 'relative' }],
  ])('refuses what no command could be given: %s', (field, create, image) => {
    expect(fieldOf(() => settle(create, image))).toBe(field);
  });
});

it('shows a name that was settled before, and not what it meant beside it', () => {
  const { spec, layers } = settle({ ...CREATE, environment: 'named' });
  expect(spec).toMatchObject({ environment: 'named' });
  expect(spec).not.toHaveProperty('layers');
  expect(layers).toHaveLength(1);
});

describe('checkCreate', () => {
  it.each([
    ['layers', {}],
    ['backend', { ...CREATE, backend: 'microvm' }],
    ['network', { ...CREATE, network: [{ kind: 'domain', target: 'example.org' }] }],
  ] as const)('refuses by %s', (field, create) => {
    expect(fieldOf(() => checkCreate(create as SandboxCreate, CONTAINER, LOOPBACK))).toBe(field);
  });

  it('takes the rest', () => {
    expect(
      fieldOf(() => checkCreate({ ...CREATE, environment: 'settled' }, CONTAINER, LOOPBACK)),
    ).toBeUndefined();
    expect(
      fieldOf(() => checkCreate({ environment: 'e', network: [] }, CONTAINER, LOOPBACK)),
    ).toBeUndefined();
    expect(
      fieldOf(() => checkCreate({ ...CREATE, backend: 'container' }, CONTAINER, LOOPBACK)),
    ).toBeUndefined();
  });
});
