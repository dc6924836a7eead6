import { DsecError } from '@dsec/std';
import { expect, it } from 'vitest';
import { createOutbox } from '../src/outbox.ts';

function outbox(bytesMax: number, sendersMax: number) {
  const written: number[] = [];
  const done: ((failure?: Error | null) => void)[] = [];
  const box = createOutbox<number>({
    bytesMax,
    sendersMax,
    write(item, finished) {
      if (item < 0) throw new DsecError('invalid-argument', 'negative');
      written.push(item);
      done.push(finished);
      return item;
    },
  });
  return { box, written, finish: (failure?: Error) => done.shift()?.(failure) };
}

it('hands on up to its bound and lets the others wait in order', async () => {
  const { box, written, finish } = outbox(10, 10);
  const order: number[] = [];
  const sends = [6, 6, 1, 2].map((item) => box.send(item).then(() => order.push(item)));
  await Promise.all(sends.slice(0, 2));
  expect(written).toEqual([6, 6]);
  expect(box.bytes).toBe(12);
  finish();
  await Promise.all(sends);
  expect(written).toEqual([6, 6, 1, 2]);
  expect(order).toEqual([6, 6, 1, 2]);
});

it('bounds those who wait, and lets one leave without harm to the rest', async () => {
  const { box, written, finish } = outbox(1, 2);
  await box.send(5);
  const abort = new AbortController();
  const leaving = box.send(1, abort.signal);
  const staying = box.send(2);
  await expect(box.send(3)).rejects.toMatchObject({ code: 'overloaded' });
  abort.abort(new DsecError('deadline-exceeded', 'late'));
  await expect(leaving).rejects.toMatchObject({ code: 'deadline-exceeded' });
  finish();
  await staying;
  expect(written).toEqual([5, 2]);
});

it('refuses one bad item and goes on', async () => {
  const { box, finish } = outbox(1, 9);
  await expect(box.send(-1)).rejects.toMatchObject({ code: 'invalid-argument' });
  await box.send(1);
  const bad = box.send(-1);
  const good = box.send(2);
  finish();
  await expect(bad).rejects.toMatchObject({ code: 'invalid-argument' });
  await good;
});

it('is flushed when all is written, and fails as a whole', async () => {
  const { box, finish } = outbox(1, 9);
  await box.flushed();
  await box.send(1);
  const waiting = box.send(2);
  const flushed = box.flushed();
  finish();
  await waiting;
  finish();
  await flushed;
  await box.send(3);
  const ends = [box.send(4), box.flushed()].map((end) =>
    expect(end).rejects.toMatchObject({ code: 'unavailable' }),
  );
  finish(new Error('EPIPE'));
  await Promise.all(ends);
  await expect(box.send(5)).rejects.toMatchObject({ code: 'unavailable' });
});
