/** A server on containers with a workspace, a grader's layer and a solver, to grade what the solver did. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Client, type GradeOptions, type Sandbox } from '@dsec/libdsec';
import { type ServerWorld, startServerWorld } from '../e2e/server-world.ts';

export const BASE = 'base/small:1.0.0';
export const WORKSPACE = 'workspace/sum:1.0.0';
export const GRADER = 'grading/sum:1.0.0';

/** Reports on descriptor 3 with the word of descriptor 4; the solution runs as a process of its own. */
const CHECK = `read -r word <&4; exec 4<&-
for pair in one:1:2:3 two:20:22:42; do
  IFS=: read -r name a b sum <<END
$pair
END
  found=$(sh /work/src/sum.sh "$a" "$b" 3>&- </dev/null 2>&1 | head -c 100)
  if [ "$found" = "$sum" ]; then outcome=passed; else outcome=failed; fi
  echo "$word $outcome $name" >&3
done
`;

export const REQUEST = {
  solutionPaths: ['/work/src'],
  testPaths: ['/work/src/tests'],
  layers: [GRADER],
  commands: [{ argv: ['sh', '/.dsec/sum/check.sh'], expect: ['one', 'two'] }],
} as const satisfies GradeOptions;

export const RIGHT = 'echo $(($1 + $2))\n';
export const WRONG = 'echo 0\n';

export interface GradingWorld {
  readonly server: ServerWorld;
  /** May do everything. */
  readonly client: Client;
  solver(): Promise<Sandbox>;
  close(): Promise<void>;
}

export async function openGradingWorld(): Promise<GradingWorld> {
  const programs = [
    'mkdir',
    'mkfifo',
    'ln',
    'cp',
    'mv',
    'chmod',
    'find',
    'truncate',
    'readlink',
    'grep',
  ];
  const server = await startServerWorld({ backend: 'container', base: { programs } });
  const { url, api_key: apiKey } = server.variables;
  const client = new Client({ url, apiKey });
  await importTree(client, WORKSPACE, {
    'work/src/sum.sh': WRONG,
    'work/src/old.sh': 'old\n',
    'work/src/tests/kept.txt': 'as it was\n',
    'work/conftest.py': 'of the builder\n',
  });
  await importTree(client, GRADER, { 'check.sh': CHECK, 'answers.txt': 'canary-of-the-grader\n' });
  return {
    ...{ server, client },
    solver: () => client.create({ layers: [BASE, WORKSPACE], ttl: { lifetimeMs: 600_000 } }),
    async close() {
      await client.close();
      await server.stop();
    },
  };
}

export async function importTree(
  client: Client,
  ref: string,
  files: Readonly<Record<string, string>>,
): Promise<string> {
  const root = mkdtempSync(join(tmpdir(), 'dsec-grading-'));
  try {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(root, 'tree', path)), { recursive: true });
      writeFileSync(join(root, 'tree', path), text);
    }
    const tar = join(root, 'tree.tar');
    execFileSync('tar', ['-cf', tar, '--owner=0', '--group=0', '-C', join(root, 'tree'), '.']);
    const [, kind, name, version] = /^(.+)\/(.+):(.+)$/.exec(ref) ?? [];
    const layer = await client.layers.importLayer(
      tar,
      kind as 'workspace',
      String(name),
      String(version),
    );
    return layer.layerId;
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}
