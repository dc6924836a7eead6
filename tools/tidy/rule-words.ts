import ts from 'typescript';
import { codeFiles, type Finding, isGenerated, isTestFile, type Rule } from './repository.ts';
import { lineOf, walk } from './syntax.ts';

const SOURCE = /(^|\/)(Makefile|[^/]+\.(ts|mjs|js|c|h|py|sh|mk))$/;
/** Split, so that this file does not hold them. */
const MARKERS = new RegExp(
  `\\b(${['FIX' + 'ME', 'TO' + 'DO', 'XX' + 'X', 'HA' + 'CK'].join('|')})\\b`,
);

export const noMarkers: Rule = {
  name: 'no notes to come back later',
  check(repository) {
    const files = [...repository.files.values()].filter(
      ({ path }) => SOURCE.test(path) && !isGenerated(path),
    );
    const findings = files.flatMap(({ path, text }) =>
      text.split('\n').flatMap((content, index): Finding[] => {
        const marker = MARKERS.exec(content)?.[0];
        if (marker === undefined) return [];
        const message = `${marker}: do it now, file an issue, or say plainly what the limit is and why`;
        return [{ path, line: index + 1, message }];
      }),
    );
    return { looked: files.length, findings };
  },
};

const TEST_FUNCTIONS = new Set(['describe', 'it', 'test', 'suite', 'bench']);
/** What the test runner prints as the reason when a test gives no other: `mounts a layer (needs root)`. */
const NEED = /\(needs [^)]+\)/;

/** `it.only` hides every other test; a skip without a reason hides a test without a word. */
export const noHiddenTests: Rule = {
  name: 'no test is left out silently',
  check(repository) {
    const findings: Finding[] = [];
    const files = codeFiles(repository).filter(({ path }) => isTestFile(path));
    for (const file of files) {
      walk(file, (node) => {
        if (!ts.isPropertyAccessExpression(node) || !ts.isIdentifier(node.expression)) return;
        if (!TEST_FUNCTIONS.has(node.expression.text)) return;
        const message = remedyOf(node);
        if (message !== undefined) findings.push({ path: file.path, line: lineOf(node), message });
      });
    }
    return { looked: files.length, findings };
  },
};

function remedyOf(access: ts.PropertyAccessExpression): string | undefined {
  const name = access.name.text;
  if (name === 'only') return '.only hides every other test: remove it';
  if (!['skip', 'todo', 'skipIf', 'runIf'].includes(name) || namesItsNeed(access)) return undefined;
  return (
    `.${name} gives no reason: end the title with what is missing, as in "(needs root)", ` +
    "or call context.skip(condition, 'why') in the test"
  );
}

/** Looks for the title in the calls around `it.runIf`: `it.runIf(isRoot)('mounts (needs root)', …)`. */
function namesItsNeed(access: ts.Expression): boolean {
  let chain: ts.Node = access;
  for (;;) {
    const { parent } = chain;
    const isChained =
      (ts.isCallExpression(parent) || ts.isPropertyAccessExpression(parent)) &&
      parent.expression === chain;
    if (!isChained) return false;
    const title = ts.isCallExpression(parent) ? parent.arguments[0] : undefined;
    if (title !== undefined && ts.isStringLiteralLike(title) && NEED.test(title.text)) return true;
    chain = parent;
  }
}
