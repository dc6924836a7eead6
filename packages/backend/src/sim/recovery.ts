import type { RecoveryReport, SandboxClaim, SandboxKey, SandboxRecovery } from '../backend.ts';
import { keyText, type SimSandbox, type SimWorld } from './world.ts';

/** What a backend does at the start: keeps what runs and is claimed, destroys everything else. */
export async function recoverWorld(
  world: SimWorld,
  claims: readonly SandboxClaim[],
  destroy: (sandbox: SimSandbox) => Promise<void>,
): Promise<RecoveryReport> {
  const destroyed: SandboxKey[] = [];
  const claimed = new Set(claims.map(({ plan }) => keyText(plan.key)));
  for (const sandbox of [...world.sandboxes.values()]) {
    if (claimed.has(keyText(sandbox.key))) continue;
    await destroy(sandbox);
    destroyed.push(sandbox.key);
  }
  const sandboxes: SandboxRecovery[] = [];
  for (const claim of claims) sandboxes.push(await recoverOne(world, claim, destroy));
  return { sandboxes, destroyed };
}

async function recoverOne(
  world: SimWorld,
  { plan, runtime }: SandboxClaim,
  destroy: (sandbox: SimSandbox) => Promise<void>,
): Promise<SandboxRecovery> {
  const { key } = plan;
  const sandbox = world.sandboxes.get(keyText(key));
  if (sandbox === undefined) return { key, running: false, exit: undefined };
  if (runtime !== undefined && sandbox.end === undefined) {
    return { key, running: true, frozen: sandbox.context.time.isFrozen };
  }
  const exit = sandbox.end;
  await destroy(sandbox);
  return { key, running: false, exit };
}
