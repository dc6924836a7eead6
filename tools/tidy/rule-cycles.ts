import { importGraph, packageNames, readManifest } from './graph.ts';
import { SCOPE } from './levels.ts';
import type { Rule } from './repository.ts';

export const noFileCycles: Rule = {
  name: 'files do not import each other in a circle',
  check(repository) {
    const graph = importGraph(repository);
    const next = new Map(
      [...graph.edges].map(([path, edges]) => [
        path,
        edges.flatMap(({ to }) => (to === undefined ? [] : [to])),
      ]),
    );
    return {
      looked: graph.importCount,
      findings: circlesOf(next).map((circle) => ({
        path: circle[0] ?? '',
        line: 1,
        message: `a circle (${circle.join(' → ')}): move what they share into a file that both import`,
      })),
    };
  },
};

export const noPackageCycles: Rule = {
  name: 'packages do not depend on each other in a circle',
  check(repository) {
    const next = new Map(
      packageNames(repository).map((name) => [
        name,
        Object.keys(readManifest(repository, `packages/${name}/package.json`)?.dependencies ?? {})
          .filter((dependency) => dependency.startsWith(SCOPE))
          .map((dependency) => dependency.slice(SCOPE.length)),
      ]),
    );
    return {
      looked: next.size,
      findings: circlesOf(next).map((circle) => ({
        path: `packages/${circle[0]}/package.json`,
        line: 1,
        message: `a circle (${circle.join(' → ')}): move what they share into a package below them`,
      })),
    };
  },
};

/**
 * Every circle that a depth-first walk closes. The trail is a list and not the call stack, so deep graphs
 * are fine.
 */
export function circlesOf(next: ReadonlyMap<string, readonly string[]>): string[][] {
  const circles: string[][] = [];
  const state = new Map<string, 'open' | 'done'>();
  for (const start of next.keys()) {
    if (state.has(start)) continue;
    const trail: { name: string; rest: string[] }[] = [];
    const enter = (name: string) => {
      state.set(name, 'open');
      trail.push({ name, rest: [...(next.get(name) ?? [])] });
    };
    enter(start);
    for (let top = trail.at(-1); top !== undefined; top = trail.at(-1)) {
      const target = top.rest.pop();
      if (target === undefined) {
        state.set(top.name, 'done');
        trail.pop();
      } else if (state.get(target) === 'open') {
        const from = trail.findIndex(({ name }) => name === target);
        circles.push([...trail.slice(from).map(({ name }) => name), target]);
      } else if (!state.has(target)) {
        enter(target);
      }
    }
  }
  return circles;
}
