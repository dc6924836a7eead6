export * from './agent-link.ts';
export { type AgentOptions, connectAgent } from './connect-agent.ts';
export { openRaw } from './raw-stream.ts';
