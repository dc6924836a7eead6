import { expect, it } from 'vitest';
import { orAborted } from '../src/index.ts';

it('is the work or the signal, whichever is first', async () => {
  const controller = new AbortController();
  expect(await orAborted(Promise.resolve(1), controller.signal)).toBe(1);
  expect(await orAborted(Promise.resolve(2), undefined)).toBe(2);
  await expect(orAborted(Promise.reject(new Error('no')), controller.signal)).rejects.toThrow('no');
  const left = orAborted(new Promise(() => undefined), controller.signal);
  controller.abort(new Error('gone'));
  await expect(left).rejects.toThrow('gone');
  await expect(orAborted(Promise.resolve(3), controller.signal)).rejects.toThrow('gone');
});
