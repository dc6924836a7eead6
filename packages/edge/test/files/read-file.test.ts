import { DsecError, MIB } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { readFile } from '../../src/files/read-file.ts';
import { done, type Script, scriptedAgent, stdout } from './scripted-agent.ts';

const FIELDS = { path: Buffer.from('/f'), offset: 0 };

async function read(script: Script, expected = 10, lengthBytes?: number, signal?: AbortSignal) {
  const scripted = scriptedAgent(script);
  const fields = lengthBytes === undefined ? FIELDS : { ...FIELDS, lengthBytes };
  let bytes = 0;
  try {
    for await (const part of readFile(scripted.agent, fields, expected, signal)) {
      bytes += part.byteLength;
    }
    return { ...scripted, bytes, error: undefined };
  } catch (error) {
    return { ...scripted, bytes, error };
  }
}

describe('in frames', () => {
  it('reads to the end that the agent says', async () => {
    const { bytes, error, left } = await read({ frames: [stdout(0, 3), stdout(3, 4), done(7)] });
    expect([bytes, error, left()]).toEqual([7, undefined, { cancel: false }]);
  });

  it.each([
    ['more than was asked for', [stdout(0, 6)], 5],
    ['another end than was told', [stdout(0, 6), done(5)], undefined],
    ['an end without a number', [stdout(0, 6), done()], undefined],
    ['an answer to something else', [{ type: 'exec-exit' } as never], undefined],
  ])('%s breaks the link', async (_, frames, lengthBytes) => {
    const { error, closed, left } = await read({ frames }, 10, lengthBytes);
    expect(error).toMatchObject({ code: 'protocol' });
    expect(closed).toEqual([error]);
    expect(left()).toEqual({ cancel: true });
  });

  it('gives up when the reader leaves', async () => {
    const { agent, left } = scriptedAgent({ frames: [stdout(0, 3)] });
    for await (const _ of readFile(agent, FIELDS, 10)) break;
    expect(left()).toEqual({ cancel: true });
  });

  it('ends with its caller while the agent is silent', async () => {
    const stop = new AbortController();
    setTimeout(() => stop.abort(new DsecError('cancelled', 'gone')), 20);
    const { error } = await read({ frames: [stdout(0, 3)] }, 10, undefined, stop.signal);
    expect(error).toMatchObject({ code: 'cancelled' });
  });
});

describe('on a raw stream', () => {
  const raw = [Buffer.alloc(1000), Buffer.alloc(500)];

  it('reads it, and believes the framed answer', async () => {
    const { bytes, error, raws } = await read({ raw, frames: [done(1500)] }, MIB);
    expect([bytes, error]).toEqual([1500, undefined]);
    expect(raws[0]?.destroyed).toBe(true);
  });

  it.each([
    ['less than was sent', done(1501), undefined],
    ['more than was asked for', done(1500), 1400],
  ])('%s breaks the link', async (_, frame, lengthBytes) => {
    const { error, closed } = await read({ raw, frames: [frame] }, MIB, lengthBytes);
    expect(error).toMatchObject({ code: 'protocol' });
    expect(closed).toEqual([error]);
  });

  it('throws what the agent answers', async () => {
    const failure = new DsecError('permission-denied', 'read');
    const { error } = await read({ raw: [], frames: [failure] }, MIB);
    expect(error).toMatchObject({ code: 'permission-denied', details: { about: 'path' } });
  });

  it('goes back to frames where there is none', async () => {
    const { bytes, error, sent } = await read({ frames: [stdout(0, 9), done(9)] }, MIB);
    expect([bytes, error]).toEqual([9, undefined]);
    expect(sent).toEqual(['file-read', 'file-read']);
  });

  it('ends with its caller', async () => {
    const stop = new AbortController();
    setTimeout(() => stop.abort(new DsecError('cancelled', 'gone')), 20);
    const { error, raws } = await read({ raw }, MIB, undefined, stop.signal);
    expect(error).toMatchObject({ code: 'cancelled' });
    expect(raws[0]?.destroyed).toBe(true);
  });
});
