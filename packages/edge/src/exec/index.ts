export { type Agents, type AgentsOptions, createAgents } from './agents.ts';
export { COMMAND_LIMITS, type CommandLimits } from './commands.ts';
export {
  createExecServices,
  type ExecServices,
  type ExecServicesOptions,
} from './exec-services.ts';
export type { Execs } from './execs.ts';
export type { PageQuery } from './listing.ts';
export type { OutputReply } from './output-reader.ts';
export type { Sessions } from './sessions.ts';
