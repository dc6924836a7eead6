// @ts-check
/**
 * A client in a process of its own, so that its memory is its own: moves a file in, out, and through the
 * output of a command, and tells what it got and the most memory that it ever had.
 */
import { createHash } from 'node:crypto';
import { Client } from '@dsec/libdsec';

const [sandboxId = '', source = '', target = ''] = process.argv.slice(2);

/** @param {AsyncIterable<Uint8Array>} pieces */
async function digestOf(pieces) {
  const digest = createHash('sha256');
  for await (const bytes of pieces) digest.update(bytes);
  return digest.digest('hex');
}

// Where the server is comes from the environment: a key is not for all to see in a list of processes.
const client = new Client();
const sandbox = await client.get(sandboxId);
await sandbox.files.upload(source, '/large');
const streamed = await digestOf(sandbox.files.stream('/large'));
await sandbox.files.download('/large', target);
const { sizeBytes } = await sandbox.files.stat('/large');
const command = await sandbox.start(['cat', '/large'], { maxOutputBytes: sizeBytes });
const digest = createHash('sha256');
let printedBytes = 0;
for await (const { data } of command.stream({ skipLost: true })) {
  digest.update(data);
  printedBytes += data.byteLength;
}
await client.close();
const printed = digest.digest('hex');
const memoryBytes = process.resourceUsage().maxRSS * 1024;
console.log(JSON.stringify({ streamed, printed, printedBytes, sizeBytes, memoryBytes }));
