#!/usr/bin/env node
// @ts-check
import { LabUnavailable } from './failure.mjs';
import { prepareLab } from './lab.mjs';

/** Makes everything that `run.mjs` starts the guest from, and says how long each part took. */
try {
  const startedMs = performance.now();
  const lab = await prepareLab((name, made) => {
    const took = made.reused ? 'in the cache' : `${(made.tookMs / 1000).toFixed(1)} s`;
    process.stdout.write(`lab: ${name.padEnd(24)}${took}\n`);
  });
  const tookMs = performance.now() - startedMs;
  const machine = `QEMU ${lab.qemu}, ${lab.accelerator}`;
  const took = `${(tookMs / 1000).toFixed(1)} s`;
  process.stdout.write(`lab: ready in ${took}: Linux ${lab.release} on ${machine}\n`);
} catch (error) {
  if (!(error instanceof LabUnavailable)) throw error;
  process.stderr.write(`lab: ${error.message}\n`);
  process.exitCode = error.exitCode;
}
