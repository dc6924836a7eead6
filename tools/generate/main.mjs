/**
 * Writes everything that is generated from `packages/protocol`, `packages/std` and `packages/policy`:
 *
 *     node tools/generate/main.mjs           writes what differs
 *     node tools/generate/main.mjs --check   writes nothing; exits with 1 when something is stale
 *
 * It builds these packages first, so it always speaks of the present sources.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { renderCHeader, renderCTables } from './c-protocol.mjs';
import { renderCliPage } from './cli-page.mjs';
import { renderErrorsPage } from './errors-page.mjs';
import { renderBrokenFrames, renderGoldenFrames } from './golden-frames.mjs';
import { renderPythonModels } from './python-models.mjs';
import { renderPythonSync } from './python-sync.mjs';
import { renderPythonErrors, renderPythonRoutes } from './python-tables.mjs';
import { renderSyscallTable } from './seccomp.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));

async function main(options) {
  const unknown = options.find((option) => option !== '--check');
  if (unknown !== undefined) throw new Error(`unknown option ${unknown}; there is only --check`);
  const check = options.includes('--check');
  const stale = [];
  for (const [path, result] of Object.entries(await renderAll())) {
    if (result.skipped !== undefined) {
      console.log(`skipped ${path}: ${result.skipped}`);
      continue;
    }
    const file = join(root, path);
    if (existsSync(file) && readFileSync(file, 'utf8') === result.text) continue;
    stale.push(path);
    if (check) continue;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, result.text);
    console.log(`wrote ${path}`);
  }
  if (!check) return 0;
  for (const path of stale) console.error(`stale: ${path}; run: npm run generate`);
  return stale.length === 0 ? 0 : 1;
}

/** Every generated file by its path from the root: its text, or why it cannot be made here. */
async function renderAll() {
  const packages = ['std', 'protocol', 'policy'];
  execFileSync(
    join(root, 'node_modules/.bin/tsc'),
    ['-b', ...packages.map((name) => `packages/${name}`)],
    { cwd: root, stdio: 'inherit' },
  );
  const [std, protocol, policy] = await Promise.all(packages.map(loadPackage));
  const { version } = JSON.parse(
    readFileSync(join(root, 'packages/protocol/package.json'), 'utf8'),
  );
  const document = protocol.buildOpenApi(version);
  return {
    'spec/openapi.json': { text: `${JSON.stringify(document, null, 2)}\n` },
    'spec/policy.schema.json': { text: `${JSON.stringify(policy.policySchema(), null, 2)}\n` },
    'spec/golden/frames.txt': { text: renderGoldenFrames(protocol) },
    'spec/golden/broken-frames.txt': { text: renderBrokenFrames(protocol) },
    'native/include/dsec_protocol.gen.h': { text: renderCHeader(protocol, std) },
    'native/common/protocol.gen.c': { text: renderCTables(protocol) },
    'packages/backend-container/src/syscall-table.gen.ts': { text: renderSyscallTable(root) },
    'docs/reference/cli.md': { text: await renderCliPage(root) },
    'docs/reference/errors.md': { text: renderErrorsPage(std) },
    'python/libdsec/models_gen.py': renderPythonModels(root, document),
    'python/libdsec/errors_gen.py': { text: renderPythonErrors(std) },
    'python/libdsec/routes_gen.py': { text: renderPythonRoutes(protocol) },
    ...renderPythonSync(root),
  };
}

const loadPackage = (name) =>
  import(pathToFileURL(join(root, 'packages', name, 'dist/index.js')).href);

process.exitCode = await main(process.argv.slice(2));
