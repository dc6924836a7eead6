import { createSeededRandom, DsecError } from '@dsec/std';
import { describe, expect, it } from 'vitest';
import { createReceiveCredit, createSendCredit } from '../src/index.ts';

describe('send credit', () => {
  it('gives what is granted and waits for more', async () => {
    const credit = createSendCredit(10, 15);
    expect(await credit.take(3)).toBe(3);
    expect(await credit.take(100)).toBe(2);
    const waiting = credit.take(100);
    credit.grant(15);
    credit.grant(16);
    expect(await waiting).toBe(1);
    expect(credit.offset).toBe(16);
  });

  it('refuses a grant that goes back', () => {
    const credit = createSendCredit(0, 15);
    expect(() => credit.grant(14)).toThrow(expect.objectContaining({ code: 'protocol' }));
  });

  it('ends a wait by signal and by failure', async () => {
    const credit = createSendCredit(0, 0);
    const abort = new AbortController();
    const aborted = credit.take(1, abort.signal);
    abort.abort();
    await expect(aborted).rejects.toMatchObject({ code: 'cancelled' });
    const failed = credit.take(1);
    credit.fail(new DsecError('agent-lost', 'gone'));
    await expect(failed).rejects.toMatchObject({ code: 'agent-lost' });
    await expect(credit.take(1)).rejects.toMatchObject({ code: 'agent-lost' });
  });
});

describe('receive credit', () => {
  it('refuses gaps, overlaps and more than was granted', () => {
    const code = { code: 'protocol' };
    const refuse = (offset: number, bytes: number) => {
      const credit = createReceiveCredit(100, 50);
      credit.receive(100, 20);
      expect(() => credit.receive(offset, bytes)).toThrow(expect.objectContaining(code));
    };
    refuse(121, 1);
    refuse(119, 1);
    refuse(120, 31);
    const credit = createReceiveCredit(100, 50);
    credit.receive(100, 50);
    expect(credit.offset).toBe(150);
  });

  it('keeps a sender within the window, whatever is released when', async () => {
    const random = createSeededRandom(3);
    const windowBytes = 64;
    const sender = createSendCredit(0, windowBytes);
    const receiver = createReceiveCredit(0, windowBytes);
    let undealt = 0;
    let granted = windowBytes;
    for (let round = 0; round < 2000; round += 1) {
      if (sender.offset < granted && random.int(2) === 0) {
        const offset = sender.offset;
        const taken = await sender.take(1 + random.int(30));
        receiver.receive(offset, taken);
        undealt += taken;
      } else if (undealt > 0) {
        const bytes = 1 + random.int(undealt);
        undealt -= bytes;
        granted = receiver.release(bytes) ?? granted;
        sender.grant(granted);
      }
      expect(undealt).toBeLessThanOrEqual(windowBytes);
    }
    expect(receiver.offset).toBeGreaterThan(1000);
    if (undealt > 0) granted = receiver.release(undealt) ?? granted;
    expect(granted - receiver.offset).toBeGreaterThanOrEqual(windowBytes / 2);
  });
});
