import {
  AETHER_FRAMES,
  CHANNELS,
  check,
  encodeFrame,
  FRAME_DATA_BYTES_MAX,
  payloadBytesMax,
  USER_BYTES_MAX,
} from '@dsec/protocol';
import { expect, test } from 'vitest';
import { UserText } from '../src/api/sandbox.ts';

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

test('the longest user that the API takes fits a frame', () => {
  const user = `${'u'.repeat(32)}:${'g'.repeat(32)}`;
  expect(check(UserText, user, 'user')).toBe(user);
  expect(Buffer.byteLength(user)).toBe(USER_BYTES_MAX);
  const fields = { path: Buffer.from('/'), user, followSymlinks: true };
  const frame = { type: 'file-stat', stream: 1, epoch: 1, offset: 0, fields } as const;
  expect(encodeFrame(AETHER_FRAMES, frame).byteLength).toBeGreaterThan(USER_BYTES_MAX);
});
