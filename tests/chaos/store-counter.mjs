// Adds one to a shared counter so many times, by compare-and-set.
// Usage: node store-counter.mjs <store file> <times>
import { openSqliteStore } from '@dsec/store';

const [path, times] = process.argv.slice(2);
const store = await openSqliteStore({ path });

for (let added = 0; added < Number(times); ) {
  const entry = await store.keys.get('counter');
  const value = entry === undefined ? 0 : Number(new TextDecoder().decode(entry.value));
  const next = new TextEncoder().encode(String(value + 1));
  try {
    if (entry === undefined) await store.keys.create('counter', next);
    else await store.keys.compareAndSet('counter', next, entry.revision);
    added += 1;
  } catch (error) {
    if (error.code !== 'conflict' && error.code !== 'already-exists') throw error;
  }
}
await store.close();
