import ts from 'typescript';
import {
  cFiles,
  codeFiles,
  type Finding,
  isTestFile,
  type RepositoryFile,
  type Rule,
} from './repository.ts';
import { lineCountOf, lineOf, walk } from './syntax.ts';

export const FILE_LINES_MAX = 400;
export const FUNCTION_LINES_MAX = 70;
export const COLUMNS_MAX = 110;
const C_TAB_WIDTH = 8;

export const fileLength: Rule = {
  name: `files have at most ${FILE_LINES_MAX} lines`,
  check(repository) {
    const files = [...codeFiles(repository), ...cFiles(repository)];
    const findings = files.flatMap(({ path, text }) => {
      const lines = text.split('\n').length - 1;
      if (lines <= FILE_LINES_MAX) return [];
      return [
        {
          path,
          line: FILE_LINES_MAX + 1,
          message: `${lines} lines: move one of its concerns to a file named after it`,
        },
      ];
    });
    return { looked: files.length, findings };
  },
};

export const columnCount: Rule = {
  name: `lines have at most ${COLUMNS_MAX} columns`,
  check(repository) {
    const files = [...codeFiles(repository), ...cFiles(repository)];
    return { looked: files.length, findings: files.flatMap(wideLines) };
  },
};

function wideLines({ path, text }: RepositoryFile): Finding[] {
  return text.split('\n').flatMap((content, index) => {
    const columns = [...content].reduce(
      (sum, character) => sum + (character === '\t' ? C_TAB_WIDTH - (sum % C_TAB_WIDTH) : 1),
      0,
    );
    if (columns <= COLUMNS_MAX) return [];
    const message = `${columns} columns: break the line (the formatter does not break strings and comments)`;
    return [{ path, line: index + 1, message }];
  });
}

/** Tables are exempt: a function that only returns a literal holds data, not steps. */
export const functionLength: Rule = {
  name: `functions have at most ${FUNCTION_LINES_MAX} lines`,
  check(repository) {
    const findings: Finding[] = [];
    let looked = 0;
    for (const file of codeFiles(repository)) {
      walk(file, (node) => {
        if (!isFunction(node)) return;
        looked += 1;
        const lines = lineCountOf(node);
        if (lines <= FUNCTION_LINES_MAX || isTable(node)) return;
        if (isTestFile(file.path) && isSuiteBody(node)) return;
        findings.push({
          path: file.path,
          line: lineOf(node),
          message: `a function of ${lines} lines: give a step of it a name and a function of its own`,
        });
      });
    }
    return { looked, findings };
  },
};

type FunctionNode = ts.FunctionLikeDeclaration & { readonly body?: ts.ConciseBody };

function isFunction(node: ts.Node): node is FunctionNode {
  return ts.isFunctionLike(node) && 'body' in node && node.body !== undefined;
}

function isTable(node: FunctionNode): boolean {
  const body = node.body;
  if (body === undefined) return false;
  const only = ts.isBlock(body) ? body.statements[0] : undefined;
  if (ts.isBlock(body) && (body.statements.length !== 1 || !only || !ts.isReturnStatement(only))) {
    return false;
  }
  const value = ts.isBlock(body) ? (only as ts.ReturnStatement).expression : body;
  return value !== undefined && isLiteral(value);
}

function isLiteral(expression: ts.Expression): boolean {
  let value = expression;
  while (ts.isParenthesizedExpression(value) || ts.isSatisfiesExpression(value)) {
    value = value.expression;
  }
  if (!ts.isObjectLiteralExpression(value) && !ts.isArrayLiteralExpression(value)) return false;
  let hasSteps = false;
  const look = (node: ts.Node): void => {
    if (isFunction(node)) hasSteps = true;
    else ts.forEachChild(node, look);
  };
  look(value);
  return !hasSteps;
}

/** The body of `describe(…)` lists tests, as a file does. */
function isSuiteBody(node: ts.Node): boolean {
  const call = node.parent;
  if (call === undefined || !ts.isCallExpression(call)) return false;
  let callee: ts.Expression = call.expression;
  while (ts.isPropertyAccessExpression(callee) || ts.isCallExpression(callee)) {
    callee = callee.expression;
  }
  return ts.isIdentifier(callee) && /^describe|Suite$/.test(callee.text);
}
