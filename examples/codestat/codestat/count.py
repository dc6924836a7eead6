"""What is in one source file."""

import ast


def count_source(source):
    """Lines, functions and classes in Python source text. Raises SyntaxError for anything else."""
    tree = ast.parse(source)
    functions = classes = 0
    for node in ast.walk(tree):
        functions += isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        classes += isinstance(node, ast.ClassDef)
    return {"lines": source.count("\n"), "functions": functions, "classes": classes}
