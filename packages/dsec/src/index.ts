export { type DistributionBase, makeDistributionBase } from './examples/base.ts';
