import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const python = `${root}.venv/bin/python`;

test('nothing that is generated is stale', () => {
  const { status, stdout, stderr } = spawnSync('node', ['tools/generate/main.mjs', '--check'], {
    cwd: root,
    encoding: 'utf8',
  });
  if (stdout.includes('skipped')) console.log(stdout);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
});

test('the Python models take and give the JSON of the API', (context) => {
  context.skip(!existsSync(python), 'needs .venv, see tools/bootstrap.mjs --test');
  const program = `
from libdsec import models
event = models.Event.model_validate_json('{"type":"lost","cursor":"a","atMs":3,"later":1}')
assert isinstance(event.root, models.LostEvent) and event.root.at_ms == 3
spec = models.SandboxSpec(env={"A": "b"}, limits=models.SandboxLimits(memory_bytes=5))
print(spec.model_dump_json(by_alias=True, exclude_none=True))
`;
  const output = execFileSync(python, ['-c', program], { cwd: `${root}python`, encoding: 'utf8' });
  expect(JSON.parse(output)).toEqual({ env: { A: 'b' }, limits: { memoryBytes: 5 } });
});
