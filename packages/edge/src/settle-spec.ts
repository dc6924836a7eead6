/**
 * From what a caller asks for to a complete plan: the one place that knows defaults. Pure; nothing below it
 * has a default.
 */
import type { BackendReport, SandboxPlan } from '@dsec/backend';
import type { ResolvedEnvironment } from '@dsec/layers';
import {
  ENV_VARIABLES_MAX,
  type Sandbox,
  type SandboxCreate,
  type SandboxLimits,
  type SandboxSpec,
  type Ttl,
} from '@dsec/protocol';
import { DsecError, KIB, parseSandboxId, type SandboxId } from '@dsec/std';
import { backendProtections, type NodeNetwork } from './network/network.ts';
import { type Caller, gradingRefusal } from './operation.ts';
import { type NodePolicies, withoutPolicyProtections } from './policy/node-policies.ts';
import type { ProcessDefaults } from './sandboxes.ts';

/** What a node gives to a sandbox that asks for nothing, and the most that it gives to one that asks. */
export interface NodePolicy {
  readonly limits: Required<SandboxLimits>;
  readonly limitsMax: Required<SandboxLimits>;
  readonly ttl: Ttl;
}

export interface SettledSandbox {
  readonly spec: SandboxSpec;
  readonly layers: Sandbox['layers'];
  /** All but the slot, which is known when it is admitted, and what follows from it. */
  readonly plan: Omit<SandboxPlan, 'slot' | 'network'>;
  readonly defaults: ProcessDefaults;
  readonly ttl: Ttl;
}

export interface SettleInput {
  readonly id: SandboxId;
  readonly create: SandboxCreate;
  readonly caller: Caller;
  readonly environment: ResolvedEnvironment;
  readonly backend: Pick<BackendReport, 'kind'>;
  readonly policy: NodePolicy;
  readonly policies: Pick<NodePolicies, 'settle'>;
}

/** All variables of a command together, as `NAME=value` with a NUL each. */
const ENV_BYTES_MAX = 64 * KIB;
const USER = /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,31})?$/;
const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,127}$/;

/**
 * What can be said before layers are looked at. Throws `invalid-argument` with the field, or `unsupported`
 * for what this node cannot give, and what is wrong with rules of the network.
 */
export function checkCreate(
  create: SandboxCreate,
  backend: Pick<BackendReport, 'kind'>,
  network: Pick<NodeNetwork, 'check'>,
): void {
  // Both: an apiserver has settled the name, which stays for show.
  if (create.environment === undefined && create.layers === undefined) {
    throw invalid('layers', 'a sandbox needs either a named environment or its layers');
  }
  if (create.backend !== undefined && create.backend !== backend.kind) {
    throw new DsecError('unsupported', `this edge runs ${backend.kind}, not ${create.backend}`, {
      details: { field: 'backend' },
    });
  }
  if (isNetworked(create)) network.check(create.network ?? []);
}

/** Whether it gets a link. No rules: loopback only. */
export const isNetworked = ({ network = [] }: Pick<SandboxSpec, 'network'>) => network.length > 0;

/** Throws `invalid-argument` with the field that cannot be met. */
export function settleSpec(input: SettleInput): SettledSandbox {
  const { id, create, caller, environment, backend, policy } = input;
  const limits = settleLimits(create.limits ?? {}, policy);
  const defaults = settleProcess(create, environment);
  const job = create.job ?? caller.job;
  const isolation = create.isolation ?? 'project';
  const ttl = { ...policy.ttl, ...create.ttl };
  checkGrading(create, environment, caller);
  const tools = toolsOf(create, environment);
  const allowDegraded = create.allowDegraded ?? false;
  const requireProtections = create.requireProtections ?? [];
  const { planned } = input.policies.settle({
    ...{ choice: create.policy, stage: create.stage, hasTools: tools !== undefined },
    allowDegraded,
  });
  const { waitFor: _, layers, ...asked } = create;
  const named = create.environment === undefined && layers !== undefined ? { layers } : {};
  return {
    spec: {
      ...{ ...asked, ...named },
      ...{ backend: backend.kind, limits, user: defaults.user, cwd: defaults.cwd },
      ...{ isolation, ttl, allowDegraded, requireProtections },
      ...(job === undefined ? {} : { job }),
    },
    layers: [...environment.layers, ...(environment.apart ?? [])].map(({ ref, layerId }) => ({
      ...{ ref, layerId },
    })),
    plan: {
      key: { id, generation: 1 },
      layers: environment.layers.map(({ kind, layerId }) => ({ kind, layerId })),
      ...(tools === undefined ? {} : { tools }),
      ...{ limits, allowDegraded },
      ...(planned === undefined ? {} : { policy: planned }),
      requireProtections: withoutPolicyProtections(
        backendProtections(requireProtections, isNetworked(create)),
      ),
      hostname: parseSandboxId(id).random,
      isolationDomain: isolationDomainOf(isolation, caller.project, job),
    },
    ...{ defaults, ttl },
  };
}

/** Builders and solvers are different principals: what grades is mounted for graders alone. */
function checkGrading(
  { grading = false }: SandboxCreate,
  { apart = [] }: ResolvedEnvironment,
  { mayGrade = false }: Caller,
): void {
  const needsIt = apart.find(({ kind }) => kind === 'grading');
  if ((grading || needsIt !== undefined) && !mayGrade) {
    throw gradingRefusal(`${needsIt?.ref ?? 'grading'}: needs a key with the scope grading`);
  }
  if (needsIt === undefined || grading) return;
  throw invalid('layers', `${needsIt.ref} is for a sandbox with grading: true`);
}

function toolsOf(
  { grading = false }: SandboxCreate,
  { apart = [] }: ResolvedEnvironment,
): SandboxPlan['tools'] {
  if (!grading && apart.length === 0) return undefined;
  const layers = apart.map(({ kind, name, layerId }) => ({ kind, name, layerId }));
  return { platform: grading, layers };
}

/**
 * More processors than the node has would hold nothing back: that is no mistake of a caller, who need not
 * know what nodes have.
 */
function settleLimits(asked: SandboxLimits, { limits, limitsMax }: NodePolicy) {
  const wanted = { ...limits, ...asked };
  const cpuMillicores = Math.min(wanted.cpuMillicores, limitsMax.cpuMillicores);
  const settled = { ...wanted, cpuMillicores };
  for (const name of Object.keys(limitsMax) as (keyof SandboxLimits)[]) {
    const [value, max] = [settled[name], limitsMax[name]];
    if (value > max) throw invalid(`limits.${name}`, `${name} is at most ${max} on this node`);
  }
  return settled;
}

function settleProcess(create: SandboxCreate, { image }: ResolvedEnvironment): ProcessDefaults {
  const env: Record<string, string> = {};
  for (const line of image?.env ?? []) {
    const split = line.indexOf('=');
    const name = line.slice(0, Math.max(0, split));
    if (VARIABLE.test(name)) env[name] = line.slice(split + 1);
  }
  Object.assign(env, create.env);
  checkEnv(env);
  const user = create.user ?? (image?.user || 'root');
  if (!USER.test(user)) {
    throw invalid('user', 'the image names its user in a form that is not known: name one');
  }
  const cwd = create.cwd ?? (image?.workdir || '/');
  if (!cwd.startsWith('/')) throw invalid('cwd', "the image's directory is relative: name one");
  return { env, user, cwd };
}

function checkEnv(env: Readonly<Record<string, string>>): void {
  const variables = Object.entries(env);
  const bytes = variables.reduce((sum, [name, value]) => sum + envBytes(name, value), 0);
  if (variables.length > ENV_VARIABLES_MAX) {
    throw invalid('env', `with those of the image there are more than ${ENV_VARIABLES_MAX}`);
  }
  if (bytes > ENV_BYTES_MAX) {
    throw invalid(
      'env',
      `with those of the image all are ${bytes} bytes, at most ${ENV_BYTES_MAX}`,
    );
  }
}

const envBytes = (name: string, value: string) => name.length + Buffer.byteLength(value) + 2;

function isolationDomainOf(isolation: string, project: string, job: string | undefined): string {
  if (isolation === 'node') return 'node';
  if (isolation === 'project') return `project/${project}`;
  if (job === undefined) throw invalid('isolation', 'isolation by job needs a job');
  return `job/${project}/${job}`;
}

function invalid(field: string, message: string): DsecError {
  return new DsecError('invalid-argument', message, { details: { field } });
}
