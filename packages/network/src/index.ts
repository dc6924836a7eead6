export * from './rules/address.ts';
export * from './rules/compile.ts';
export * from './rules/compiled.ts';
export * from './rules/default-services.ts';
export * from './rules/match.ts';
export * from './rules/name.ts';
export * from './rules/operator-network.ts';
export * from './rules/special-ranges.ts';
