import { Duplex } from 'node:stream';
import { KIB, type Random } from '@dsec/std';

/** An agent's end of a connection whose bytes are spoilt from some place on. */
export function createMangledPipe(inner: Duplex, random: Random): Duplex {
  let left = random.int(4 * KIB);
  const outer = new Duplex({
    read: () => inner.resume(),
    write(chunk: Buffer, _encoding, done) {
      const spoilt = Buffer.from(chunk);
      if (left < spoilt.length) spoilt.fill(0xff, left);
      left = Math.max(0, left - spoilt.length);
      inner.write(spoilt, done);
    },
    final: (done) => inner.end(done),
    destroy(error, done) {
      inner.destroy();
      done(error);
    },
  });
  inner.on('data', (chunk) => {
    if (!outer.push(chunk)) inner.pause();
  });
  inner.on('end', () => outer.push(null));
  inner.on('error', () => outer.destroy());
  inner.on('close', () => outer.destroy());
  return outer;
}
