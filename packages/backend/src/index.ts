export * from './agent/index.ts';
export * from './backend.ts';
