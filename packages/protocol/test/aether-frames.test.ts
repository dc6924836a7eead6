import { AETHER_FRAMES, CHANNELS, FRAME_DATA_BYTES_MAX, payloadBytesMax } from '@dsec/protocol';
import { expect, test } from 'vitest';

const frames = Object.entries(AETHER_FRAMES.frames);

test('the agent can send no frame that is longer than a data frame', () => {
  const fromAgent = frames.filter(([, { from }]) => from !== 'client');
  expect(Math.max(...fromAgent.map(([, frame]) => payloadBytesMax(frame)))).toBe(
    FRAME_DATA_BYTES_MAX,
  );
});

test('data frames are the channels, stdin going in and the others coming out', () => {
  const data = frames.filter(([, { message }]) => message === undefined);
  expect(data.map(([name, { from }]) => [name, from])).toEqual([
    ['stdin', 'client'],
    ['stdout', 'server'],
    ['stderr', 'server'],
  ]);
  expect(data.map(([name]) => name)).toEqual(CHANNELS);
});

test('only what begins or ends a connection has no stream', () => {
  const names = frames.filter(([, { scope }]) => scope === 'connection').map(([name]) => name);
  expect(names).toEqual(['hello', 'welcome', 'ping', 'pong', 'reseed', 'reseeded']);
});
