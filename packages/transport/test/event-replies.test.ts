import { afterEach, expect, it } from 'vitest';
import { ask, startServer, stopAll } from './support/test-server.ts';

afterEach(stopAll);

it('begins the reply to a follower when the first item is there', async () => {
  let hold = () => {};
  const held = new Promise<void>((resolve) => {
    hold = resolve;
  });
  const { baseUrl } = await startServer({
    events: async () =>
      (async function* () {
        await held;
        yield undefined;
      })(),
  });
  let isAnswered = false;
  const reply = ask(baseUrl, '/v1/things/abc/events').then(({ body }) => {
    isAnswered = true;
    return body;
  });
  await ask(baseUrl, '/v1/things/abc');
  expect(isAnswered).toBe(false);
  hold();
  expect(await reply).toBe(': connected\n\n:\n\n');
});
