import type { ErrorBody } from '@dsec/protocol';
import { describe, expect, it } from 'vitest';
import { InvalidArgumentError, Sandbox, SandboxFailure } from '../src/index.ts';
import { clientOf, listed, sandboxInfo } from './support/fake-server.ts';

const idOf = (index: number) => `sb-s1-e1-${String.fromCharCode(97 + index).repeat(16)}`;
const error: ErrorBody = {
  ...{ message: 'too much', retryable: false, remedy: 'less', details: {} },
  code: 'invalid-argument',
};

describe('createMany', () => {
  it('yields each one as it comes, over lost connections, with one key', async () => {
    const keys = new Set<string | undefined>();
    let attempts = 0;
    const client = await clientOf({
      async createSandboxes({ body }, { idempotencyKey }) {
        expect(body).toEqual({ count: 4, spec: { environment: 'x', job: 'j' } });
        keys.add(idempotencyKey);
        attempts += 1;
        const most = attempts * 2;
        return (async function* () {
          for (const index of [2, 0, 1, 3].slice(0, most)) {
            yield { index, sandbox: sandboxInfo({ id: idOf(index) }) };
          }
          if (most < 4) throw new Error('the server is gone');
        })();
      },
    });
    const made = await listed(client.createMany(4, { environment: 'x', job: 'j' }));
    expect(made.map((one) => (one as Sandbox).id)).toEqual([2, 0, 1, 3].map(idOf));
    expect(keys.size).toBe(1);
  });

  it('yields what failed with its place, or throws it', async () => {
    const client = await clientOf({
      createSandboxes: async () =>
        (async function* () {
          yield { index: 1, error };
          yield { index: 0, sandbox: sandboxInfo() };
        })(),
    });
    const [failure, sandbox] = await listed(client.createMany(2, { environment: 'x' }));
    expect(failure).toBeInstanceOf(SandboxFailure);
    expect(failure).toMatchObject({ index: 1, error: { code: 'invalid-argument' } });
    expect(sandbox).toBeInstanceOf(Sandbox);
    const raising = client.createMany(2, { environment: 'x', raiseOnFailure: true });
    await expect(listed(raising)).rejects.toBeInstanceOf(InvalidArgumentError);
  });
});
