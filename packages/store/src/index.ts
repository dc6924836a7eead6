export { createMemoryStore, type MemoryStoreOptions } from './memory-store.ts';
export { openSqliteStore, type SqliteStoreOptions } from './sqlite-store.ts';
export * from './store.ts';
