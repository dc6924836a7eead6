import { DsecError, MIB } from '@dsec/std';
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

interface Call {
  readonly signal?: AbortSignal;
  readonly bytesExpected?: number;
}

async function write(script: Script, bytes: AsyncIterable<Uint8Array>, call: Call = {}) {
  const scripted = scriptedAgent(script);
  const { bytesExpected = 7, signal } = call;
  try {
    await writeFile(scripted.agent, FIELDS, bytes, bytesExpected, signal);
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

describe('writeFile of much', () => {
  const much = { bytesExpected: MIB };

  it('goes raw, and says on the stream how much there was', async () => {
    const script = { raw: [], atEnd: done(7) };
    const { error, sent, written, raws } = await write(script, body(3, 4), much);
    expect([error, sent, written]).toEqual([undefined, ['file-write', 'end at 7'], []]);
    expect(raws[0]?.destroyed).toBe(true);
  });

  it('goes in frames where there is no second connection', async () => {
    const { sent, written } = await write({ atEnd: done(7) }, body(3, 4), much);
    expect(sent).toEqual(['file-write', 'file-write', 'end']);
    expect(written.length).toBe(2);
  });

  it('never says the end of a body that breaks off', async () => {
    const { error, sent, left, raws } = await write({ raw: [] }, body(3, GONE), much);
    expect(error).toBe(GONE);
    expect(sent).toEqual(['file-write']);
    expect(left()).toEqual({ cancel: true });
    expect(raws[0]?.destroyed).toBe(true);
  });

  it('hears why an agent takes no more', async () => {
    const full = new DsecError('storage-full', 'no space left on device');
    const script = { raw: [], isStuck: true, frames: [full] };
    const { error, sent } = await write(script, body(MIB, MIB), much);
    expect(error).toMatchObject({ code: 'storage-full', details: { about: 'path' } });
    expect(sent).toEqual(['file-write']);
  });

  it('ends when the caller gives up, whatever the agent does', async () => {
    const caller = new AbortController();
    const script = { raw: [], isStuck: true };
    const writing = write(script, body(MIB, MIB), { ...much, signal: caller.signal });
    setImmediate(() => caller.abort(GONE));
    const { error, left } = await writing;
    expect(error).toMatchObject({ code: 'cancelled' });
    expect(left()).toEqual({ cancel: true });
  });
});
