import type { AgentLink } from '@dsec/backend';
import type { FileAgent } from '../files/file-agent.ts';
import { writeFile } from '../files/write-file.ts';

/** No request of a caller is behind it. */
const TRACE_BYTES = 25;

/**
 * Tells the programs of a sandbox where names are asked for. The file is of its writable layer, as one that
 * it wrote itself.
 */
export async function writeResolver(
  link: AgentLink,
  dial: FileAgent['dial'],
  random: FileAgent['random'],
  gateway: string,
  signal?: AbortSignal,
): Promise<void> {
  const text = Buffer.from(
    `# of DSec: the rules of this sandbox say what exists\nnameserver ${gateway}\n`,
  );
  const fields = {
    ...{
      path: Buffer.from('/etc/resolv.conf'),
      user: '0',
      mode: 0o644,
      trace: new Uint8Array(TRACE_BYTES),
    },
    ...{ createParents: true, exclusive: false },
  };
  const body = (async function* () {
    yield text;
  })();
  await writeFile(
    { link, dial, random, onUse: () => undefined },
    fields,
    body,
    text.length,
    signal,
  );
}
