import { describe, expect, it } from 'vitest';
import { allowedProcessors, hardOpenFiles } from '../src/node-facts.ts';

describe('allowedProcessors', () => {
  it.each([
    ['0', [0]],
    ['0-3', [0, 1, 2, 3]],
    ['0-1,4,6-7', [0, 1, 4, 6, 7]],
  ])('%s', (list, processors) => {
    const status = `Name:\tx\nCpus_allowed_list:\t${list}\nMems_allowed:\t1\n`;
    expect(allowedProcessors(status)).toEqual(processors);
  });
});

describe('hardOpenFiles', () => {
  const limits = (hard: string) =>
    `Limit                     Soft Limit           Hard Limit           Units\n` +
    `Max open files            1024                 ${hard}                files\n`;

  it('is the second number', () => expect(hardOpenFiles(limits('20000'))).toBe(20_000));
  it('is what the kernel has at most where there is none', () =>
    expect(hardOpenFiles(limits('unlimited'))).toBeGreaterThan(1000));
});
