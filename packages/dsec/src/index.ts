export { type DistributionBase, makeDistributionBase } from './examples/base.ts';
export { ensureTicketKeys, type TicketKeyFiles } from './ticket-key-files.ts';
