// Writes a thousand values of every kind to a store, eight at a time, and says each one aloud once
// it is acknowledged. The test kills it at any moment: what it has said must be there. Usage: node
// store-writer.mjs <store file> <round>
import { createHash } from 'node:crypto';
import { writeSync } from 'node:fs';
import { openSqliteStore } from '@dsec/store';

const WRITES = 1000;
const IN_FLIGHT = 8;
const [path, round] = process.argv.slice(2);

const store = await openSqliteStore({ path });
// The test reads the queue by leasing from it again and again.
await store.queues.define('q', { leaseMs: 1, deliveriesMax: 1e6, depthMax: 1e6, deadMax: 1 });

/** Names itself and carries its digest, so that a half value cannot pass for a whole one. */
function wholeValue(name) {
  const body = `${name} ${'.'.repeat((createHash('md5').update(name).digest()[0] ?? 0) * 40)}`;
  return new TextEncoder().encode(`${createHash('sha256').update(body).digest('hex')} ${body}`);
}

const kinds = [
  (name) => store.keys.create(`k/${name}`, wholeValue(name)),
  (name) => store.logs.append('l', wholeValue(name)),
  (name) => store.queues.enqueue('q', wholeValue(name)),
];

let next = 0;
async function writeOneAfterAnother() {
  while (next < WRITES) {
    const i = next;
    next += 1;
    const name = `${round}-${i}`;
    await kinds[i % kinds.length](name);
    writeSync(1, `${i % kinds.length} ${name}\n`);
  }
}

writeSync(1, 'ready\n');
await Promise.all(Array.from({ length: IN_FLIGHT }, writeOneAfterAnother));
await store.close();
