import ts from 'typescript';
import type { RepositoryFile } from './repository.ts';

/** One import, re-export, `import()` or `import type` of a file. */
export interface Import {
  readonly specifier: string;
  readonly line: number;
}

const parsed = new WeakMap<RepositoryFile, ts.SourceFile>();

/** The syntax tree of a file; each file is parsed once. */
export function syntaxOf(file: RepositoryFile): ts.SourceFile {
  let tree = parsed.get(file);
  if (tree === undefined) {
    tree = ts.createSourceFile(file.path, file.text, ts.ScriptTarget.Latest, true);
    parsed.set(file, tree);
  }
  return tree;
}

/** Calls `visit` with every node, parents before children; in JavaScript also with types in comments. */
export function walk(file: RepositoryFile, visit: (node: ts.Node) => void): void {
  const hasTypesInComments = !file.path.endsWith('.ts');
  const enter = (node: ts.Node): void => {
    visit(node);
    if (hasTypesInComments) {
      for (const comment of ts.getJSDocCommentsAndTags(node)) {
        if (comment.parent === node) ts.forEachChild(comment, enter);
      }
    }
    ts.forEachChild(node, enter);
  };
  enter(syntaxOf(file));
}

/** The 1-based line on which a node starts. */
export function lineOf(node: ts.Node): number {
  const tree = node.getSourceFile();
  return tree.getLineAndCharacterOfPosition(node.getStart(tree)).line + 1;
}

/** How many lines a node spans, its leading comment not counted. */
export function lineCountOf(node: ts.Node): number {
  const tree = node.getSourceFile();
  return tree.getLineAndCharacterOfPosition(node.getEnd()).line + 2 - lineOf(node);
}

export function importsOf(file: RepositoryFile): Import[] {
  const imports: Import[] = [];
  walk(file, (node) => {
    const literal = specifierOf(node);
    if (literal !== undefined) imports.push({ specifier: literal.text, line: lineOf(node) });
  });
  return imports;
}

function specifierOf(node: ts.Node): ts.StringLiteralLike | undefined {
  let target: ts.Node | undefined;
  if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node)) target = node.moduleSpecifier;
  else if (ts.isImportTypeNode(node) && ts.isLiteralTypeNode(node.argument)) {
    target = node.argument.literal;
  } else if (ts.isCallExpression(node) && node.expression.kind === ts.SyntaxKind.ImportKeyword) {
    target = node.arguments[0];
  }
  return target !== undefined && ts.isStringLiteralLike(target) ? target : undefined;
}
