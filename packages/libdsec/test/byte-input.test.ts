import { bytesOfPath } from '@dsec/protocol';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { bodyOf, pathFields } from '../src/byte-input.ts';
import { joined } from './support/fake-server.ts';

describe('pathFields', () => {
  it('gives every name a form that means its bytes', () => {
    const bytes = fc
      .uint8Array({ minLength: 1, maxLength: 50 })
      .filter((path) => !path.includes(0));
    fc.assert(
      fc.property(bytes, (path) => {
        const { path: text, pathBase64: base64 } = pathFields('path', path);
        expect(bytesOfPath({ text, base64 }, 'path', 4095)).toEqual(Buffer.from(path));
      }),
    );
    expect(pathFields('path', '/grüße')).toEqual({ path: '/grüße' });
    expect(pathFields('source', Buffer.from('/ok'))).toEqual({ source: '/ok' });
    expect(pathFields('source', Uint8Array.of(47, 255))).toEqual({ sourceBase64: 'L/8=' });
  });
});

describe('bodyOf', () => {
  it('keeps bytes as they are, as they can be sent again', () => {
    const bytes = Uint8Array.of(1, 2);
    expect(bodyOf(bytes)).toBe(bytes);
    expect(bodyOf('ü')).toEqual(Buffer.from('ü'));
  });

  it('takes iterations of both kinds piece by piece', async () => {
    const pieces = [Uint8Array.of(1), Uint8Array.of(2, 3)];
    const body = bodyOf(pieces) as AsyncIterable<Uint8Array>;
    expect(await joined(body)).toEqual(Buffer.of(1, 2, 3));
    const broken = (async function* () {
      yield Uint8Array.of(1);
      throw new TypeError('mine');
    })();
    const taken = joined(bodyOf(broken) as AsyncIterable<Uint8Array>);
    await expect(taken).rejects.toMatchObject({ code: 'internal', message: 'mine' });
  });
});
