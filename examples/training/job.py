"""A training job in small: many sandboxes in one burst, in each an attempt to mend a project, scored.

    dsec up                                          # in another terminal
    .venv/bin/python examples/training/job.py --environment example --sandboxes 64

In each sandbox it reads the project, runs the tests, applies one of the patches of patches/ (here the part of
the model), runs the tests again, and scores what came of it: the share of the failing tests that now pass, or
nothing where a test that passed before fails now. The tests that score are those of the layer, whatever the
patch has done to them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import re
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from libdsec import AsyncClient, AsyncSandbox, DsecError, SandboxFailure, Ttl
from libdsec.errors import CommandFailed

PATCHES = Path(__file__).parent / "patches"
PROJECT = "/workspace/spans"
#: What each attempt is worth. A job of its own would not know; this one checks the machinery by it.
REWARDS = {
    "breaks-minutes": 0.0,
    "edits-the-tests": 0.0,
    "everything": 1.0,
    "merge": 1 / 3,
    "merge-and-subtract": 2 / 3,
    "nothing": 0.0,
    "subtract": 1 / 3,
    "weeks": 1 / 3,
}
TEST = ["python3", "-m", "pytest", "-q", "-rpfE", "--no-header", "-p", "no:cacheprovider"]
OUTCOME = re.compile(r"^(PASSED|FAILED|ERROR) (\S+)", re.MULTILINE)
#: No sandbox of a job that was killed lives longer.
LIFETIME_MS = 10 * 60_000
COMMAND_S = 120


@dataclass(frozen=True)
class Attempt:
    """What became of one sandbox. Times are milliseconds."""

    patch: str
    sandbox: str = ""
    reward: float = 0.0
    repaired: int = 0
    broken: int = 0
    allocated_ms: float | None = None
    ready_ms: float | None = None
    first_command_ms: float | None = None
    memory_bytes: int | None = None
    error: str | None = None


async def run_tests(sandbox: AsyncSandbox) -> dict[str, bool]:
    """Every test by its name, and whether it passed."""
    result = await sandbox.exec(TEST, cwd=PROJECT, timeout=COMMAND_S)
    outcomes = {name: word == "PASSED" for word, name in OUTCOME.findall(result.stdout)}
    if not outcomes:
        raise CommandFailed(result)
    return outcomes


async def attempt(sandbox: AsyncSandbox, name: str) -> Attempt:
    """One episode, from the first look at the project to the reward."""
    await sandbox.exec(["ls", PROJECT], check=True)
    await sandbox.refresh()
    timings = sandbox.info.timings
    for path in ("README.md", "spans/interval.py", "tests/test_interval.py"):
        await sandbox.files.read_text(f"{PROJECT}/{path}")
    before = await run_tests(sandbox)
    if name != "nothing":
        patch = (PATCHES / f"{name}.patch").read_bytes()
        await sandbox.exec(["git", "apply", "-"], cwd=PROJECT, stdin=patch, check=True, timeout=COMMAND_S)
    await sandbox.exec(
        ["git", "checkout", "-q", "HEAD", "--", "tests"], cwd=PROJECT, check=True, timeout=COMMAND_S
    )
    after = await run_tests(sandbox)
    failing = [test for test, passed in before.items() if not passed]
    repaired = sum(after.get(test, False) for test in failing)
    broken = sum(passed and not after.get(test, False) for test, passed in before.items())
    await sandbox.refresh()
    usage = sandbox.info.usage
    return Attempt(
        patch=name,
        sandbox=sandbox.id,
        reward=0.0 if broken or not failing else repaired / len(failing),
        repaired=repaired,
        broken=broken,
        allocated_ms=timings.allocated_ms,
        ready_ms=timings.ready_ms,
        first_command_ms=timings.first_command_ms,
        memory_bytes=None if usage is None else usage.memory_peak_bytes,
    )


async def episode(sandbox: AsyncSandbox, name: str) -> Attempt:
    """The same, with the sandbox stopped in any case and an error as a result."""
    try:
        async with sandbox:
            return await attempt(sandbox, name)
    except (DsecError, CommandFailed) as error:
        return Attempt(patch=name, sandbox=sandbox.id, error=str(error))


class Progress:
    """A bar on a terminal, elsewhere a line for each quarter."""

    def __init__(self, total: int, quiet: bool) -> None:
        self.total = total
        self.ready = 0
        self.scored = 0
        self._quiet = quiet
        self._is_terminal = sys.stderr.isatty()
        self._told = 0

    def show(self) -> None:
        if self._quiet:
            return
        line = f"{self.ready} ready, {self.scored} of {self.total} scored"
        if self._is_terminal:
            filled = 30 * self.scored // self.total
            print(f"\r[{'=' * filled}{' ' * (30 - filled)}] {line}", end="", file=sys.stderr, flush=True)
            if self.scored == self.total:
                print(file=sys.stderr)
        elif 4 * self.scored // self.total > self._told:
            self._told = 4 * self.scored // self.total
            print(line, file=sys.stderr, flush=True)


async def run_job(environment: str, count: int, job: str, quiet: bool) -> tuple[list[Attempt], float, float]:
    """All attempts, and seconds until the last sandbox was ready and until the last was scored."""
    names = sorted(REWARDS)
    progress = Progress(count, quiet)
    started = time.monotonic()
    ready_s = 0.0

    async def scored(sandbox: AsyncSandbox, name: str) -> Attempt:
        result = await episode(sandbox, name)
        progress.scored += 1
        progress.show()
        return result

    attempts: list[Attempt] = []
    tasks: list[asyncio.Task[Attempt]] = []
    async with AsyncClient() as client:
        made = client.create_many(
            count, environment, job=job, cwd=PROJECT, ttl=Ttl(lifetime_ms=LIFETIME_MS)
        )
        try:
            async for item in made:
                name = names[(len(tasks) + len(attempts)) % len(names)]
                if isinstance(item, SandboxFailure):
                    attempts.append(Attempt(patch=name, error=str(item.error)))
                    progress.scored += 1
                else:
                    progress.ready += 1
                    ready_s = time.monotonic() - started
                    tasks.append(asyncio.create_task(scored(item, name)))
                progress.show()
            attempts.extend(await asyncio.gather(*tasks))
        except BaseException:
            # Whoever is interrupted leaves nothing: neither these, nor those that were just being made.
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await client.jobs.stop(job)
            raise
    return attempts, ready_s, time.monotonic() - started


def percentile(values: Sequence[float], share: float) -> float:
    """The least value that this share of them does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * share / 100) - 1)]


def show_rewards(attempts: Sequence[Attempt]) -> None:
    by_patch: dict[str, list[Attempt]] = defaultdict(list)
    for one in attempts:
        by_patch[one.patch].append(one)
    print(f"{'attempt':<20} {'sandboxes':>9} {'reward':>7} {'repaired':>9} {'broken':>7} {'failed':>7}")
    for name, group in sorted(by_patch.items()):
        done = [one for one in group if one.error is None]
        reward = sum(one.reward for one in done) / len(done) if done else 0.0
        repaired, broken = (sum(getattr(one, field) for one in done) for field in ("repaired", "broken"))
        print(
            f"{name:<20} {len(group):>9} {reward:>7.2f} {repaired:>9} {broken:>7} {len(group) - len(done):>7}"
        )


def show_figures(attempts: Sequence[Attempt]) -> None:
    rows: dict[str, tuple[list[float | None], float, str]] = {
        "allocated": ([one.allocated_ms for one in attempts], 1.0, "ms"),
        "ready": ([one.ready_ms for one in attempts], 1.0, "ms"),
        "first command": ([one.first_command_ms for one in attempts], 1.0, "ms"),
        "memory, at most": ([one.memory_bytes for one in attempts], 2.0**20, "MiB"),
    }
    print(f"\n{'':<20} {'p50':>9} {'p95':>9} {'p99':>9}")
    for name, (found, unit, unit_name) in rows.items():
        values = [value / unit for value in found if value is not None]
        if values:
            shown = " ".join(f"{percentile(values, share):>9.1f}" for share in (50, 95, 99))
            print(f"{name:<20} {shown} {unit_name}")


def show(attempts: Sequence[Attempt], ready_s: float, scored_s: float) -> None:
    print(f"\n{len(attempts)} sandboxes in one burst: all ready after {ready_s:.1f} s, scored after {scored_s:.1f} s\n")
    show_rewards(attempts)
    show_figures(attempts)
    for one in [one for one in attempts if one.error is not None][:5]:
        print(f"failed: {one.sandbox or 'no sandbox'}, {one.patch}: {one.error!r}")


def main() -> int:
    parser = argparse.ArgumentParser(description="a training job in small, on a DSec server")
    parser.add_argument("--environment", default="example", help="made of a base, spans and codestat")
    parser.add_argument("--sandboxes", type=int, default=64, metavar="N")
    parser.add_argument("--job", default=f"training-{int(time.time())}", help="the label of its sandboxes")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of tables")
    options = parser.parse_args()
    if not 1 <= options.sandboxes <= 10_000:
        parser.error("--sandboxes takes 1 to 10000")
    # Asked to end, it stops its sandboxes as it does at Ctrl-C.
    signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        attempts, ready_s, scored_s = asyncio.run(
            run_job(options.environment, options.sandboxes, options.job, options.json)
        )
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    except DsecError as error:
        print(f"{error.code}: {error}", file=sys.stderr)
        return 1
    if options.json:
        document = {"job": options.job, "ready_s": ready_s, "scored_s": scored_s}
        print(json.dumps({**document, "attempts": [asdict(one) for one in attempts]}))
    else:
        show(attempts, ready_s, scored_s)
    is_right = all(
        one.error is None and abs(one.reward - REWARDS[one.patch]) < 1e-9 for one in attempts
    )
    if not is_right:
        print("some attempts failed, or were not rewarded as they should be", file=sys.stderr)
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
