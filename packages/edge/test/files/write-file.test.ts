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

async function write(
  script: Script,
  bytes: AsyncIterable<Uint8Array>,
  expected: number | undefined,
  signal?: AbortSignal,
) {
  const scripted = scriptedAgent(script);
  try {
    await writeFile(scripted.agent, FIELDS, bytes, expected, signal);
    return { ...scripted, error: undefined };
  } catch (error) {
    return { ...scripted, error };
  }
}

describe('in frames', () => {
  it('ends the input after the last byte, and waits for the answer', async () => {
    const { sent, written, left } = await write({ frames: [done(7)] }, body(3, 4), 7);
    expect(sent).toEqual(['file-write', 'end']);
    expect(written.map(({ byteLength }) => byteLength)).toEqual([3, 4]);
    expect(left()).toEqual({ cancel: false });
  });

  it('never ends the input of a body that breaks off', async () => {
    const { error, sent, left } = await write({}, body(3, GONE), 7);
    expect(error).toBe(GONE);
    expect(sent).toEqual(['file-write']);
    expect(left()).toEqual({ cancel: true });
  });

  it('breaks the link of an agent that took another number', async () => {
    const { error, closed } = await write({ frames: [done(6)] }, body(3, 4), 7);
    expect(error).toMatchObject({ code: 'protocol' });
    expect(closed).toEqual([error]);
  });
});

describe('on a raw stream', () => {
  it('writes it to its end, and believes the framed answer', async () => {
    let bytes = 0;
    const script: Script = {
      ...{ raw: [], frames: [done(50 * 100_000)] },
      onRawWrite: (chunk) => {
        bytes += chunk.length;
      },
    };
    const parts = Array.from({ length: 50 }, () => 100_000);
    const { error, raws, sent } = await write(script, body(...parts), undefined);
    expect([error, bytes, sent]).toEqual([undefined, 5_000_000, ['file-write']]);
    expect(raws[0]?.writableEnded).toBe(true);
  });

  it('is given up before it ends: the agent must not take the end for that of the file', async () => {
    const states: unknown[] = [];
    const scripted = scriptedAgent({
      raw: [],
      onCancel: () => {
        states.push(scripted.raws.map((raw) => [raw.writableEnded, raw.destroyed]));
        return new DsecError('cancelled', 'cancelled');
      },
    });
    const work = writeFile(scripted.agent, FIELDS, body(MIB, GONE), undefined);
    await expect(work).rejects.toBe(GONE);
    expect(states).toEqual([[[false, false]]]);
    expect(scripted.raws[0]?.destroyed).toBe(true);
    expect(scripted.left()).toEqual({ cancel: false });
  });

  it('throws why the agent closed it', async () => {
    const full = new DsecError('storage-full', 'write');
    const scripted = scriptedAgent({
      raw: [],
      onRawWrite: (_, raw) => {
        scripted.push(full);
        raw.destroy();
      },
    });
    const work = writeFile(scripted.agent, FIELDS, body(MIB, MIB, MIB), undefined);
    await expect(work).rejects.toBe(full);
  });

  it('is not used where the end of one direction ends the other, and so the file', async () => {
    const script: Script = { raw: [], bothEnd: true, frames: [done(MIB)] };
    const { error, sent, raws } = await write(script, body(MIB), undefined);
    expect([error, sent]).toEqual([undefined, ['file-write', 'file-write', 'end']]);
    expect(raws[0]?.destroyed).toBe(true);
  });

  it('goes back to frames where there is none', async () => {
    const { error, sent, written } = await write({ frames: [done(MIB)] }, body(MIB), undefined);
    expect(error).toBeUndefined();
    expect(sent).toEqual(['file-write', 'file-write', 'end']);
    expect(written.length).toBe(1);
  });
});
