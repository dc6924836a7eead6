"""Plays spec/scenarios.json with one of the two Python forms of the SDK; spec/scenarios.md says how.

run_scenarios.py --form python|python-async --variables FILE [--only NAME]…
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from scenarios.player import Player, Unexpected
from scenarios.values import FORMS, library

TABLE = json.loads((Path(__file__).parents[2] / "spec" / "scenarios.json").read_text())


async def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--form", choices=sorted(FORMS), required=True)
    parser.add_argument("--variables", type=Path, required=True)
    parser.add_argument("--only", action="append", default=[])
    options = parser.parse_args(arguments)
    given = json.loads(options.variables.read_text())
    failures = 0
    for number, scenario in enumerate(TABLE["scenarios"]):
        if options.only and scenario["name"] not in options.only:
            continue
        outcome = await play(scenario, options.form, given, number)
        failures += outcome["state"] == "failed"
        print(json.dumps({"name": scenario["name"], **outcome}), flush=True)
    surface = {name: names_of(library(name, options.form)) for name in TABLE["surface"]}
    print(json.dumps({"surface": surface}))
    return 1 if failures else 0


async def play(
    scenario: dict[str, Any], form: str, given: dict[str, Any], number: int
) -> dict[str, str]:
    if form not in scenario.get("forms", [form]):
        return {"state": "skipped", "reason": "not for this form"}
    if given["backend"] not in scenario.get("backends", [given["backend"]]):
        return {"state": "skipped", "reason": "not for this backend"}
    directory = tempfile.mkdtemp(prefix="dsec-scenario-")
    client = library("Client", form)(given["url"], given["api_key"])
    variables = {
        **given,
        "client": client,
        "directory": directory,
        "unique": f"py-{form[6:] or 'sync'}-{os.getpid()}-{number}",
        "program": TABLE["programs"][given["backend"]],
    }
    player = Player(form, variables)
    try:
        await player.play(scenario["steps"])
    except Unexpected as problem:
        return {"state": "failed", "reason": str(problem)}
    finally:
        await player.end()
        closing = client.close()
        if inspect.isawaitable(closing):
            await closing
        shutil.rmtree(directory)
    return {"state": "passed"}


def names_of(kind: type) -> list[str]:
    """Its public methods and properties, those that only an instance has included."""
    names = {
        f"{name}()" if inspect.isroutine(value) else name
        for name, value in inspect.getmembers(kind)
        if not name.startswith("_")
    }
    return sorted(names | {name for name in kind.__annotations__ if not name.startswith("_")})


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
