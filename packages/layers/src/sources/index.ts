export * from './byte-source.ts';
export * from './compression.ts';
export * from './limits.ts';
export * from './pace.ts';
export * from './tar.ts';
