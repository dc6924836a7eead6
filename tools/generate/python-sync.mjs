/**
 * The synchronous face of the Python SDK, made of the asynchronous one: the same code without its waiting.
 * What differs in more than words is in `python/libdsec/_core/async_io.py` and `sync_io.py`.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const SOURCE = 'python/libdsec/_async';
const TARGET = 'python/libdsec/_sync_gen';

const WORDS = [
  [/\bawait /g, ''],
  [/\basync (def|with|for)\b/g, '$1'],
  [/\blibdsec\._async\b/g, 'libdsec._sync_gen'],
  [/\basync_io\b/g, 'sync_io'],
  [/\basynccontextmanager\b/g, 'contextmanager'],
  [/\baclosing\b/g, 'closing'],
  [/\baclose\b/g, 'close'],
  [/\baread\b/g, 'read'],
  [/\baiter_(raw|bytes|lines)\b/g, 'iter_$1'],
  [/\b__a(enter|exit|iter|next)__\b/g, '__$1__'],
  [/\bStopAsyncIteration\b/g, 'StopIteration'],
  [/\bAsyncGenerator\[(.+), None\]/g, 'Generator[$1, None, None]'],
  [/\bAsync([A-Z])/g, '$1'],
];

/** Every file of the synchronous face by its path from the root. */
export function renderPythonSync(root) {
  const files = readdirSync(join(root, SOURCE)).filter((name) => name.endsWith('.py'));
  return Object.fromEntries(
    files.sort().map((name) => {
      const source = readFileSync(join(root, SOURCE, name), 'utf8');
      return [`${TARGET}/${name}`, { text: synchronous(source, name) }];
    }),
  );
}

/** Lines only become shorter, so that what was formatted stays so. */
function synchronous(source, name) {
  const header = `# Generated from ${SOURCE}/${name} by \`npm run generate\`. Do not edit.\n\n`;
  return header + WORDS.reduce((text, [from, to]) => text.replace(from, to), source);
}
