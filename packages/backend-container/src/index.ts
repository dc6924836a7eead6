/** Containers: what the launcher and aether make of a sandbox. */
export * from './launcher-client.ts';
