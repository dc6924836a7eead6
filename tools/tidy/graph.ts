import { posix } from 'node:path';
import { SCOPE } from './levels.ts';
import { codeFiles, isTestFile, type Repository, type RepositoryFile } from './repository.ts';
import { type Import, importsOf } from './syntax.ts';

/** An import that was found in a file, with what it leads to. */
export interface Edge extends Import {
  readonly from: string;
  /** The file it leads to; absent for Node's modules and npm packages. */
  readonly to: string | undefined;
}

export interface ImportGraph {
  readonly edges: ReadonlyMap<string, readonly Edge[]>;
  readonly importCount: number;
}

export interface Manifest {
  readonly name?: string;
  readonly exports?: Readonly<Record<string, string | Readonly<Record<string, string>>>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
}

const graphs = new WeakMap<Repository, ImportGraph>();

/** Every module and what it imports, read once per repository. */
export function importGraph(repository: Repository): ImportGraph {
  const graph = graphs.get(repository) ?? readGraph(repository);
  graphs.set(repository, graph);
  return graph;
}

function readGraph(repository: Repository): ImportGraph {
  const edges = new Map<string, Edge[]>();
  let importCount = 0;
  for (const file of modulesOf(repository)) {
    const found = importsOf(file).map((entry) => ({
      ...entry,
      from: file.path,
      to: resolve(repository, file.path, entry.specifier),
    }));
    importCount += found.length;
    edges.set(file.path, found);
  }
  return { edges, importCount };
}

/** Generated files too, since they import and are imported. */
function modulesOf(repository: Repository): RepositoryFile[] {
  const generated = [...repository.files.values()].filter(({ path }) => path.endsWith('.gen.ts'));
  return [...codeFiles(repository), ...generated];
}

function resolve(repository: Repository, from: string, specifier: string): string | undefined {
  if (specifier.startsWith('.')) return posix.join(posix.dirname(from), specifier);
  if (!specifier.startsWith(SCOPE)) return undefined;
  const [name = '', ...rest] = specifier.slice(SCOPE.length).split('/');
  const manifest = readManifest(repository, `packages/${name}/package.json`);
  const entry = manifest?.exports?.[rest.length === 0 ? '.' : `./${rest.join('/')}`];
  const source = typeof entry === 'string' ? entry : entry?.source;
  return source === undefined ? undefined : posix.join('packages', name, source);
}

export function readManifest(repository: Repository, path: string): Manifest | undefined {
  const file = repository.files.get(path);
  return file === undefined ? undefined : (JSON.parse(file.text) as Manifest);
}

/** The folders below packages/ that hold a manifest, by name. */
export function packageNames(repository: Repository): string[] {
  return [...repository.files.keys()].flatMap((path) => {
    const name = /^packages\/([^/]+)\/package\.json$/.exec(path)?.[1];
    return name === undefined ? [] : [name];
  });
}

/** The package that a path lies in: `packages/std/src/ids.ts` → `std`. */
export function packageOf(path: string): string | undefined {
  return /^packages\/([^/]+)\//.exec(path)?.[1];
}

/** Where the outside comes in: exports and programs of the packages, and the declared entry points. */
export function productRoots(repository: Repository): string[] {
  const roots: string[] = declaredEntryPoints(repository);
  for (const name of packageNames(repository)) {
    const manifest = readManifest(repository, `packages/${name}/package.json`);
    for (const entry of Object.values(manifest?.exports ?? {})) {
      const source = typeof entry === 'string' ? entry : entry.source;
      if (source !== undefined) roots.push(posix.join('packages', name, source));
    }
    for (const program of Object.values(manifest?.bin ?? {})) {
      roots.push(posix.join('packages', name, sourceOfBuilt(program)));
    }
  }
  return roots;
}

/** Files that are started and not imported, with the reason; kept in entry-points.json. */
export function declaredEntryPoints(repository: Repository): string[] {
  const file = repository.files.get('tools/tidy/entry-points.json');
  return file === undefined ? [] : Object.keys(JSON.parse(file.text) as Record<string, string>);
}

/** What vitest loads by itself: tests and its configuration. */
export function testRoots(repository: Repository): string[] {
  return [...repository.files.keys()].filter(
    (path) => isTestFile(path) || /(^|\/)vitest\.config\.ts$/.test(path),
  );
}

/** Every file that can be reached from the roots. */
export function reach(graph: ImportGraph, roots: Iterable<string>): Set<string> {
  const reached = new Set<string>(roots);
  for (const path of reached) {
    for (const { to } of graph.edges.get(path) ?? []) if (to !== undefined) reached.add(to);
  }
  return reached;
}

function sourceOfBuilt(path: string): string {
  return path.replace(/^(\.\/)?dist\//, 'src/').replace(/\.js$/, '.ts');
}
