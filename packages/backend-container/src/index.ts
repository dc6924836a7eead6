/** Containers: what the launcher and aether make of a sandbox. */
export { type ContainerBackendOptions, openContainerBackend } from './container-backend.ts';
export * from './launcher-client.ts';
export {
  type LauncherProcessOptions,
  type StartedLauncher,
  startLauncher,
} from './launcher-process.ts';
export { compileSeccomp, type SeccompArchitecture } from './seccomp-program.ts';
export type { UpperDriver } from './upper-choice.ts';
