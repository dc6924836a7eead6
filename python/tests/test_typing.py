"""What a type checker sees: the package itself, and a program that uses it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_types_are_clean(tmp_path: Path) -> None:
    options = ["--strict", "--cache-dir", str(tmp_path), "--config-file", "pyproject.toml"]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "-p", "libdsec", "-m", "typed_use"],
        cwd=ROOT,
        env={"MYPYPATH": f"{ROOT}:{ROOT / 'tests'}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
