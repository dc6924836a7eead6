/** Containers: what the launcher and aether make of a sandbox. */
export * from './launcher-client.ts';
export { compileSeccomp, type SeccompArchitecture } from './seccomp-program.ts';
