/** Many sandboxes at once, each used as soon as it is ready, all stopped at the end. */
import { Client, type Sandbox, SandboxFailure } from '@dsec/libdsec';

const [environment = 'example', count = '16'] = process.argv.slice(2);
const job = `burst-${process.pid}`;

await using client = new Client();
try {
  const runs: Promise<string>[] = [];
  for await (const made of client.createMany(Number(count), { environment, job })) {
    if (made instanceof SandboxFailure) console.log(`${made.index}: ${made.error.message}`);
    else runs.push(work(made));
  }
  const outputs = await Promise.all(runs);
  console.log(`${outputs.length} of ${count} sandboxes said ${[...new Set(outputs)].join(', ')}`);
} finally {
  const { changed } = await client.jobs.stop(job);
  console.log(`${changed} stopped`);
}

async function work(sandbox: Sandbox): Promise<string> {
  const { stdout } = await sandbox.exec('echo ready', { check: true });
  return stdout.trim();
}
