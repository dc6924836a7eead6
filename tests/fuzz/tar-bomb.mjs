// Imports a tar in a process of its own: `node tar-bomb.mjs <tar> <blob>`. Prints one line of JSON: the code
// of the error or "ok", and the most memory in MiB that this process and a decoder that it started had. Runs
// the compiled packages, as users do.
import { openSync, readdirSync, readFileSync } from 'node:fs';
import { createFileBlobSink, createLayerBuilder } from '@dsec/erofs';
import { IMPORT_LIMITS_DEFAULT, importSource } from '@dsec/layers';
import { punchHole } from '@dsec/linux';

const [path, blobPath] = process.argv.slice(2);
const limits = IMPORT_LIMITS_DEFAULT;

/** The most memory that a process has had so far, in MiB. */
function peakOf(pid) {
  try {
    const [, kib] = /^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1')) ?? [];
    return Number(kib ?? 0) / 1024;
  } catch {
    return 0;
  }
}

let decoderMib = 0;
const sampler = setInterval(() => {
  const children = readdirSync('/proc/self/task').flatMap((task) =>
    readFileSync(`/proc/self/task/${task}/children`, 'latin1').split(' ').filter(Boolean),
  );
  for (const pid of children) decoderMib = Math.max(decoderMib, peakOf(pid));
}, 20);

let code = 'ok';
let message = '';
try {
  const builder = createLayerBuilder({
    blob: createFileBlobSink(openSync(blobPath, 'w+'), punchHole),
    whiteouts: 'apply',
    dedupSources: [],
    limits,
  });
  await importSource(builder, { kind: 'tar', path }, { limits });
  builder.finish();
} catch (error) {
  code = error.code ?? 'untyped';
  message = error.message;
}
clearInterval(sampler);
console.log(JSON.stringify({ code, message, ownMib: peakOf('self'), decoderMib }));
