import {
  declaredEntryPoints,
  type Edge,
  importGraph,
  packageNames,
  packageOf,
  productRoots,
  reach,
  testRoots,
} from './graph.ts';
import { LEVELS, SCOPE } from './levels.ts';
import { codeFiles, type Finding, type Repository, type Rule } from './repository.ts';

export const everyFileIsUsed: Rule = {
  name: 'every file is imported or is a declared entry point',
  check(repository) {
    const graph = importGraph(repository);
    const roots = productRoots(repository);
    const product = reach(graph, roots);
    const all = reach(graph, [...roots, ...testRoots(repository)]);
    const files = codeFiles(repository);
    const findings: Finding[] = [];
    for (const { path } of files) {
      const isSource = /^packages\/[^/]+\/src\//.test(path);
      if ((isSource ? product : all).has(path)) continue;
      findings.push({
        path,
        line: 1,
        message: isSource
          ? 'cannot be reached from what its package exports: export it, import it or remove it; ' +
            'a program or worker is declared in tools/tidy/entry-points.json'
          : 'nothing imports it: remove it, or declare it in tools/tidy/entry-points.json with the reason',
      });
    }
    return { looked: graph.importCount, findings: [...findings, ...staleEntryPoints(repository)] };
  },
};

function staleEntryPoints(repository: Repository): Finding[] {
  return declaredEntryPoints(repository)
    .filter((path) => !repository.files.has(path))
    .map((path) => ({
      path: 'tools/tidy/entry-points.json',
      line: 1,
      message: `${path} does not exist: remove its line`,
    }));
}

export const importsResolve: Rule = {
  name: 'imports lead to files that are there',
  check(repository) {
    const graph = importGraph(repository);
    const findings: Finding[] = [];
    for (const edge of [...graph.edges.values()].flat()) {
      const isOurs = edge.specifier.startsWith('.') || edge.specifier.startsWith(SCOPE);
      if (!isOurs || (edge.to !== undefined && repository.files.has(edge.to))) continue;
      findings.push({
        path: edge.from,
        line: edge.line,
        message:
          `${edge.specifier} leads nowhere: ` +
          'name the file with its ending, or what the package exports',
      });
    }
    return { looked: graph.importCount, findings };
  },
};

export const importsPointDown: Rule = {
  name: 'imports point to a lower level only',
  check(repository) {
    const graph = importGraph(repository);
    const findings: Finding[] = packageNames(repository)
      .filter((name) => !LEVELS.has(name))
      .map((name) => ({
        path: `packages/${name}/package.json`,
        line: 1,
        message: `the package has no level: give it a row in tools/tidy/levels.ts`,
      }));
    for (const edge of [...graph.edges.values()].flat()) {
      const message = judge(edge);
      if (message !== undefined) findings.push({ path: edge.from, line: edge.line, message });
    }
    return { looked: graph.importCount, findings };
  },
};

function judge({ from, to, specifier }: Edge): string | undefined {
  const own = packageOf(from);
  const other = to === undefined ? scopedName(specifier) : packageOf(to);
  if (other === undefined) {
    if (own === undefined || to === undefined) return undefined;
    return `leaves packages/${own}: move what both need into a package`;
  }
  if (own === other) return undefined;
  // Tests that cross packages may use what a package's own tests are supported by.
  if (own === undefined && to !== undefined && /^packages\/[^/]+\/test\//.test(to))
    return undefined;
  if (specifier.startsWith('.')) return `import ${SCOPE}${other} by its name, not by a path`;
  if (own === undefined) return undefined;
  const [here, there] = [LEVELS.get(own), LEVELS.get(other)];
  if (here === undefined || there === undefined || there < here) return undefined;
  const relation = here === there ? 'is on the same level' : 'is above';
  return (
    `${other} (level ${there}) ${relation}: let a package above both of them pass it in, ` +
    `or move what ${own} (level ${here}) needs down`
  );
}

function scopedName(specifier: string): string | undefined {
  return specifier.startsWith(SCOPE) ? specifier.slice(SCOPE.length).split('/')[0] : undefined;
}
