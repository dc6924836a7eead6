/** The daemon of a node: it owns its sandboxes and their state. */

export {
  ADMISSION_DEFAULTS,
  type Admission,
  type AdmissionLimits,
  createAdmission,
} from './admission.ts';
export { CRASH_POINTS, type CrashPoint } from './crash-point.ts';
export { type Edge, type EdgeOptions, openEdge } from './edge.ts';
export { type EdgeCore, type EdgeCoreOptions, type EdgeLog, openEdgeCore } from './edge-core.ts';
export { createEdgeLog, LOG_LEVELS, type LogLevel } from './edge-log.ts';
export { cacheEnvironments } from './environment-cache.ts';
export * from './exec/index.ts';
export { createFiles, type FileContent, type Files, type FilesOptions } from './files/files.ts';
export { createHostProbe, type HostProbe, type HostSample } from './host-probes.ts';
export * from './http/index.ts';
export { type Journal, type JournalOptions, openJournal } from './journal/database.ts';
export { type EventLog, openEventLog } from './journal/event-log.ts';
export { type Idempotency, openIdempotency } from './journal/idempotency.ts';
export { openSandboxTable } from './journal/sandbox-table.ts';
export type { JournalTable } from './journal/schema.ts';
export { JOURNAL_TABLES } from './journal/tables.ts';
export type { EnvironmentSource } from './lifecycle/creation.ts';
export { dueOf, expiryOf } from './lifecycle/deadlines.ts';
export type { Lifecycle } from './lifecycle/lifecycle.ts';
export type { AgentConnector, LifecycleTimes } from './lifecycle/parts.ts';
export type { Recovery } from './lifecycle/recover.ts';
export { createAddressPool, overlappingRoutes } from './network/address-pool.ts';
export type { DeniedAccess, NetworkedSandbox, NodeNetwork } from './network/network.ts';
export {
  createNodeNetwork,
  NETWORK_DEFAULTS,
  type NodeNetworkOptions,
} from './network/node-network.ts';
export { defaultNodePolicy } from './node-policy.ts';
export { type Caller, type KeyedContext, type OperationContext, traceBytes } from './operation.ts';
export { createPorts, type Ports, type PortsOptions } from './ports/ports.ts';
export type {
  Changes,
  ChangesQuery,
  ProcessDefaults,
  RequireRunningOptions,
  SandboxEntry,
  Sandboxes,
  SandboxHooks,
} from './sandboxes.ts';
export { checkCreate, type NodePolicy, settleSpec } from './settle-spec.ts';
export { createTimerWheel, TICK_MS, type TimerWheel } from './timer-wheel.ts';
