export type {
  DoctorReport,
  Environment,
  Event,
  Exec,
  FileEntry,
  GradeReport,
  Health,
  Job,
  JobResult,
  Key,
  KeyCreated,
  Layer,
  LayerImportEvent,
  LayerRef,
  NetworkRule,
  PolicyDocument as Policy,
  PtySize,
  Sandbox as SandboxInfo,
  SandboxLimits,
  Session as SessionInfo,
  Ttl,
  Version,
} from '@dsec/protocol';
export type { FollowOptions, OutputChunk } from './attachment.ts';
export { SandboxFailure } from './batch.ts';
export type { ByteSource, Path, Pieces } from './byte-input.ts';
export { Client, type ClientOptions, type SandboxListOptions } from './client.ts';
export { Command } from './command.ts';
export { Connection } from './connection.ts';
export { type ContainerRunFields, DSecClient, DSecContainerRunArgs } from './container-client.ts';
export type { CreateManyOptions, CreateOptions, SandboxOptions } from './create-options.ts';
export { Environments } from './environments.ts';
export * from './errors.ts';
export type { EventOptions } from './events.ts';
export type {
  CommandLine,
  ExecOptions,
  SessionExecOptions,
  SessionStartOptions,
  StartOptions,
} from './exec-options.ts';
export { ExecResult } from './exec-result.ts';
export { Files, type ProgressOptions, type RangeOptions, type WriteOptions } from './files.ts';
export type { GradeCommandOptions, GradeOptions } from './grade.ts';
export { Jobs } from './jobs.ts';
export { type KeyOptions, type KeyRotateOptions, Keys, type NewKey, type Scope } from './keys.ts';
export {
  type ImportOptions,
  type LayerKind,
  type LayerReport,
  Layers,
  type RefListOptions,
} from './layers.ts';
export type { OutputName } from './output.ts';
export type { ListOptions } from './pages.ts';
export { Sandbox } from './sandbox.ts';
export type { CallSettings } from './server.ts';
export { Session, type SessionOptions } from './session.ts';
export { type FoundServer, findServer, type ServerSettings } from './settings.ts';
