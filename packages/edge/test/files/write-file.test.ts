import { DsecError } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { writeFile } from '../../src/files/write-file.ts';
import { done, type Script, scriptedAgent } from './scripted-agent.ts';

const FIELDS = { path: Buffer.from('/f'), createParents: false, exclusive: false };
const GONE = new DsecError('cancelled', 'the caller is gone');

async function* body(...sizes: readonly (number | Error)[]): AsyncGenerator<Uint8Array> {
  for (const size of sizes) {
    if (size instanceof Error) throw size;
    yield Buffer.alloc(size);
  }
}

async function write(script: Script, bytes: AsyncIterable<Uint8Array>, signal?: AbortSignal) {
  const scripted = scriptedAgent(script);
  try {
    await writeFile(scripted.agent, FIELDS, bytes, signal);
    return { ...scripted, error: undefined };
  } catch (error) {
    return { ...scripted, error };
  }
}

describe('writeFile', () => {
  it('ends the input after the last byte, and waits for the answer', async () => {
    const { sent, written, left } = await write({ atEnd: done(7) }, body(3, 4));
    expect(sent).toEqual(['file-write', 'end']);
    expect(written.map(({ byteLength }) => byteLength)).toEqual([3, 4]);
    expect(left()).toEqual({ cancel: false });
  });

  it('never ends the input of a body that breaks off', async () => {
    const { error, sent, left } = await write({}, body(3, GONE));
    expect(error).toBe(GONE);
    expect(sent).toEqual(['file-write']);
    expect(left()).toEqual({ cancel: true });
  });

  it('breaks the link of an agent that took another number', async () => {
    const { error, closed } = await write({ atEnd: done(6) }, body(3, 4));
    expect(error).toMatchObject({ code: 'protocol' });
    expect(closed).toEqual([error]);
  });

  it('breaks the link of an agent that answers before the end', async () => {
    const { error, closed } = await write({ frames: [done(3)] }, body(3, 4));
    expect(error).toMatchObject({ code: 'protocol' });
    expect(closed).toEqual([error]);
  });
});
