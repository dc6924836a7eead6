export { createSimAgent, type SimAgent } from './agent.ts';
export type { AgentContext } from './agent-context.ts';
export { createSimBackend, type SimBackend } from './backend.ts';
export { type BytePipe, createBytePipe, type PipeFaults } from './byte-pipe.ts';
export { SIM_FAULTS, type SimFault, type SimFaults } from './faults.ts';
export { HOSTILE_MODES, type HostileMode } from './hostile-agent.ts';
export type { ByteSink, ByteSource, PortServer, PortTable } from './ports.ts';
export type { ProgramIo, ProgramTable, SimProgram } from './program.ts';
export { createSimWorld, type SimSandbox, type SimWorld, type SimWorldOptions } from './world.ts';
