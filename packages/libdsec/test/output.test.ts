import { DsecError as CodedError, createSeededRandom, MIB } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { OutputLostError } from '../src/index.ts';
import { readOutput, resultOf } from '../src/output.ts';
import {
  brokenAt,
  execInfo,
  type FakeHandlers,
  joined,
  PLACE,
  piecesOf,
  serverOf,
} from './support/fake-server.ts';

const BYTES = Buffer.from(createSeededRandom(3).bytes(2 * MIB));

/** Output as an edge has it, of both streams alike. */
function outputOf(asked: object[]): FakeHandlers {
  return {
    async readExecOutput({ query }) {
      asked.push(query);
      const { offset = 0, lengthBytes = Infinity } = query;
      const end = Math.min(BYTES.length, offset + lengthBytes);
      const headers = { 'dsec-offset': String(offset), 'dsec-end': 'true' };
      return { headers, body: piecesOf(BYTES.subarray(offset, end), 50_000) };
    },
  };
}

describe('readOutput', () => {
  it('goes on where a connection broke off', async () => {
    const offsets: number[] = [];
    const server = await serverOf({
      async readExecOutput({ query: { offset = 0, follow, stream } }) {
        expect({ follow, stream }).toEqual({ follow: true, stream: 'stdout' });
        offsets.push(offset);
        const left = BYTES.subarray(offset);
        return { body: offsets.length < 3 ? brokenAt(left, MIB / 2) : piecesOf(left, 99_999) };
      },
    });
    const read = readOutput(server, PLACE, { stream: 'stdout', offset: 1000 });
    expect((await joined(read)).equals(BYTES.subarray(1000))).toBe(true);
    expect(offsets).toEqual([1000, 1000 + MIB / 2, 1000 + MIB]);
  });

  it('does not pass over output that is lost', async () => {
    const server = await serverOf({
      readExecOutput: async () => {
        throw new CodedError('output-lost', 'gone', { details: { nextOffset: 9 } });
      },
    });
    const read = joined(readOutput(server, PLACE, { stream: 'stderr', offset: 0 }));
    await expect(read).rejects.toBeInstanceOf(OutputLostError);
  });
});

describe('resultOf', () => {
  const totals = { ended: true, truncated: false };
  const whole = { ...totals, totalBytes: BYTES.length, headBytes: BYTES.length };
  const none = execInfo().stderr;

  it('is what came with the answer when that is all', async () => {
    const server = await serverOf({});
    const exec = execInfo({ stdoutBytes: 2, stderrBytes: 3 });
    const inline = {
      stdout: { offset: 0, text: 'ok' },
      stderr: { offset: 0, text: 'a?', base64: 'Yf8K' },
    };
    const result = await resultOf(server, PLACE, exec, inline, MIB);
    expect(result).toMatchObject({ ok: true, stdout: 'ok', truncated: false, durationMs: 10 });
    expect(result.stderrBytes).toEqual(Buffer.from('Yf8K', 'base64'));
  });

  it('fetches only the rest', async () => {
    const asked: object[] = [];
    const server = await serverOf(outputOf(asked));
    const exec = execInfo({}, { stdout: { ...whole, tailOffset: BYTES.length } });
    const begun = { offset: 0, text: '', base64: BYTES.subarray(0, 65_536).toString('base64') };
    const result = await resultOf(server, PLACE, exec, { stdout: begun }, 8 * MIB);
    expect(Buffer.from(result.stdoutBytes).equals(BYTES)).toBe(true);
    const lengthBytes = BYTES.length - 65_536;
    expect(asked).toEqual([{ stream: 'stdout', offset: 65_536, lengthBytes }]);
  });

  it('joins the beginning and the end of an output of which the middle is not kept', async () => {
    const asked: object[] = [];
    const server = await serverOf(outputOf(asked));
    const kept = { headBytes: 1000, tailOffset: BYTES.length - 500, truncated: true };
    const exec = execInfo({}, { stdout: { ...whole, ...kept }, stderr: none });
    const result = await resultOf(server, PLACE, exec, {}, 8 * MIB);
    expect(result.truncated).toBe(true);
    const expected = [BYTES.subarray(0, 1000), BYTES.subarray(-500)];
    expect(Buffer.from(result.stdoutBytes).equals(Buffer.concat(expected))).toBe(true);
  });

  it('takes no more than is wanted, from both ends', async () => {
    const server = await serverOf(outputOf([]));
    const exec = execInfo({}, { stdout: { ...whole, tailOffset: BYTES.length } });
    const some = await resultOf(server, PLACE, exec, {}, 1001);
    const expected = [BYTES.subarray(0, 500), BYTES.subarray(-501)];
    expect(Buffer.from(some.stdoutBytes).equals(Buffer.concat(expected))).toBe(true);
    const nothing = await resultOf(server, PLACE, exec, {}, 0);
    expect(nothing).toMatchObject({ truncated: true, stdout: '' });
  });
});
