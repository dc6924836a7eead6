export * from './blob-sink.ts';
export * from './builder.ts';
export * from './model.ts';
export { keepXattr, type XattrVerdict } from './xattr-policy.ts';
