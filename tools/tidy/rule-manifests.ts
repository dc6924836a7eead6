import { posix } from 'node:path';
import { importGraph, type Manifest, packageNames, packageOf, readManifest } from './graph.ts';
import { SCOPE } from './levels.ts';
import type { Finding, Repository, Rule } from './repository.ts';

export const dependenciesAreImports: Rule = {
  name: 'package.json lists exactly what the sources import',
  check(repository) {
    const imported = importedPackages(repository);
    const rootManifest = readManifest(repository, 'package.json') ?? {};
    const findings: Finding[] = [];
    for (const folder of manifestFolders(repository)) {
      const path = posix.join(folder, 'package.json');
      const manifest = readManifest(repository, path) ?? {};
      const listed = new Set(Object.keys(manifest.dependencies ?? {}));
      const used = imported.get(`${folder}/src`) ?? new Set();
      for (const name of used) {
        if (!listed.has(name)) {
          findings.push({ path, line: 1, message: `src imports ${name}: add it to dependencies` });
        }
      }
      for (const name of listed) {
        if (!used.has(name)) {
          findings.push({ path, line: 1, message: `nothing in src imports ${name}: remove it` });
        }
      }
      findings.push(...testImports(path, manifest, rootManifest, imported.get(`${folder}/test`)));
    }
    return { looked: [...imported.values()].reduce((sum, names) => sum + names.size, 0), findings };
  },
};

/** Tests may also use what the repository as a whole develops with. */
function testImports(
  path: string,
  manifest: Manifest,
  rootManifest: Manifest,
  used: ReadonlySet<string> | undefined,
): Finding[] {
  const allowed = new Set([
    manifest.name,
    ...Object.keys(manifest.dependencies ?? {}),
    ...Object.keys(manifest.devDependencies ?? {}),
    ...Object.keys(rootManifest.devDependencies ?? {}),
  ]);
  return [...(used ?? [])]
    .filter((name) => !allowed.has(name))
    .map((name) => ({
      path,
      line: 1,
      message: `a test imports ${name}: add it to devDependencies`,
    }));
}

export const outsideImportsAreDeclared: Rule = {
  name: 'tools and tests import only what the root package.json lists',
  check(repository) {
    const manifest = readManifest(repository, 'package.json') ?? {};
    const allowed = new Set([
      ...Object.keys(manifest.dependencies ?? {}),
      ...Object.keys(manifest.devDependencies ?? {}),
    ]);
    const findings: Finding[] = [];
    let looked = 0;
    for (const { from, to, line, specifier } of [
      ...importGraph(repository).edges.values(),
    ].flat()) {
      if (!/^(tools|tests)\//.test(from)) continue;
      looked += 1;
      const name = packageNameOf(specifier);
      if (to !== undefined || name === undefined || allowed.has(name)) continue;
      findings.push({
        path: from,
        line,
        message: `add ${name} to devDependencies of the root package.json`,
      });
    }
    return { looked, findings };
  },
};

export const referencesAreDependencies: Rule = {
  name: 'tsconfig references are the dependencies on our own packages',
  check(repository) {
    const findings: Finding[] = [];
    let looked = 0;
    const listedAtRoot = referencesOf(repository, '.');
    for (const folder of manifestFolders(repository)) {
      const manifest = readManifest(repository, posix.join(folder, 'package.json'));
      const wanted = Object.keys(manifest?.dependencies ?? {})
        .filter((name) => name.startsWith(SCOPE))
        .map((name) => `packages/${name.slice(SCOPE.length)}`);
      looked += 1;
      const path = `${folder}/tsconfig.json`;
      findings.push(...differences(path, wanted, referencesOf(repository, folder)));
      if (!listedAtRoot.includes(folder)) {
        findings.push({ path: 'tsconfig.json', line: 1, message: `add a reference to ${folder}` });
      }
    }
    return { looked, findings };
  },
};

function differences(path: string, wanted: readonly string[], have: readonly string[]): Finding[] {
  const lacking = wanted.filter((folder) => !have.includes(folder));
  const extra = have.filter((folder) => !wanted.includes(folder));
  return [
    ...lacking.map((folder) => ({ path, line: 1, message: `add a reference to ${folder}` })),
    ...extra.map((folder) => ({ path, line: 1, message: `remove the reference to ${folder}` })),
  ];
}

function referencesOf(repository: Repository, folder: string): string[] {
  const file = repository.files.get(posix.join(folder, 'tsconfig.json'));
  if (file === undefined) return [];
  const { references = [] } = JSON.parse(file.text) as { references?: { path: string }[] };
  return references.map(({ path }) => posix.join(folder, path));
}

/** packages/*, and bench/ if it has a manifest of its own. */
function manifestFolders(repository: Repository): string[] {
  const folders = packageNames(repository).map((name) => `packages/${name}`);
  return repository.files.has('bench/package.json') ? [...folders, 'bench'] : folders;
}

/** For `packages/<p>/src`, `packages/<p>/test` and `bench/src`: the npm packages that its files import. */
function importedPackages(repository: Repository): Map<string, Set<string>> {
  const imported = new Map<string, Set<string>>();
  for (const [path, edges] of importGraph(repository).edges) {
    const part = /^(packages\/[^/]+\/(?:src|test)|bench\/src)\//.exec(path)?.[1];
    if (part === undefined) continue;
    const names = imported.get(part) ?? new Set<string>();
    imported.set(part, names);
    for (const { specifier } of edges) {
      const name = packageNameOf(specifier);
      const own = packageOf(path);
      if (name === undefined || (part.endsWith('/src') && name === `${SCOPE}${own}`)) continue;
      names.add(name);
    }
  }
  return imported;
}

/** `@a/b/c` → `@a/b`, `ws` → `ws`; undefined for relative paths and Node's own modules. */
function packageNameOf(specifier: string): string | undefined {
  if (specifier.startsWith('.') || specifier.startsWith('node:')) return undefined;
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/');
}
