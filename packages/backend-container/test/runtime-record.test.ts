import { describe, expect, it } from 'vitest';
import { readRecord } from '../src/runtime-record.ts';

const record = { pid: 17, startTicks: 4711, upperDriver: 'tmpfs', oomKillsBefore: 3 };

describe('readRecord', () => {
  it('reads what was written, through JSON', () => {
    expect(readRecord(JSON.parse(JSON.stringify(record)))).toEqual(record);
  });

  it.each([
    [undefined],
    [null],
    ['x'],
    [{}],
    [{ ...record, pid: '17' }],
    [{ ...record, upperDriver: 'x' }],
    [{ ...record, oomKillsBefore: null }],
  ])('refuses %j', (value) => expect(() => readRecord(value)).toThrow(/not one of this backend/));
});
