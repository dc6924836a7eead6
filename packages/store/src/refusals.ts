import { DsecError } from '@dsec/std';

/** The errors of the seam that every driver throws, in one wording. */

export const storeClosed = () => new DsecError('unavailable', 'the store is closed');

export const keyExists = (key: string, revision: number) =>
  new DsecError('already-exists', `key ${key} exists`, { details: { revision } });

export const keyChanged = (key: string, expected: number, found: number | undefined) =>
  new DsecError('conflict', `key ${key} is ${found === undefined ? 'gone' : 'changed'}`, {
    details: { expected, ...(found === undefined ? {} : { found }) },
  });

export const logMoved = (log: string, last: number) =>
  new DsecError('conflict', `log ${log} has another last entry`, { details: { last } });

export const logTrimmed = (log: string, after: number) =>
  new DsecError('output-lost', `entries of log ${log} were trimmed`, { details: { after } });

export const queueUnknown = (queue: string) =>
  new DsecError('not-found', `queue ${queue} is not defined`);

export const queueFull = (queue: string, depthMax: number) =>
  new DsecError('overloaded', `queue ${queue} is full at ${depthMax}`);

export const leaseLost = (queue: string, sequence: number) =>
  new DsecError('conflict', `the lease of item ${sequence} of queue ${queue} has ended`, {
    details: { sequence },
  });
