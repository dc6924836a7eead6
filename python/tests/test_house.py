"""The house rules for the Python here; tools/tidy has those for the other languages."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT.parent / "examples"
# The generator of models wraps nothing and knows no other file.
WHOLE = {ROOT / "libdsec/models_gen.py"}
FILES = sorted(
    path
    for folder in (ROOT / "libdsec", ROOT / "tests", EXAMPLES / "python")
    for path in folder.rglob("*.py")
    if path not in WHOLE
)

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 110


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_are_small_and_say_what_they_are(path: Path) -> None:
    lines = path.read_text().splitlines()
    wide = [number for number, line in enumerate(lines, 1) if len(line) > COLUMNS_MAX]
    assert wide == [] and len(lines) <= FILE_LINES_MAX
    tree = ast.parse(path.read_text())
    assert ast.get_docstring(tree)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assert (node.end_lineno or 0) - node.lineno < FUNCTION_LINES_MAX, node.name


def test_the_rules_look_at_something() -> None:
    assert len(FILES) > 40
