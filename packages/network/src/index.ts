export * from './rules/compiled.ts';
