"""Answers of a server, as small as they may be."""

from __future__ import annotations

from typing import Any

SANDBOX = "sb-s1-e1-aaaaaaaaaaaaaaaa"
EXEC = "ex-aaaaaaaaaaaaaaaa"
BOX_PATH = f"/v1/sandboxes/{SANDBOX}"
EXECS = f"{BOX_PATH}/execs"
EXEC_PATH = f"{EXECS}/{EXEC}"
ATTACH = f"{EXEC_PATH}/attach"


def sandbox(id: str = SANDBOX, state: str = "running", **more: Any) -> dict[str, Any]:
    return {
        "id": id,
        "state": state,
        "revision": 1,
        "edge": "e1",
        "project": "default",
        "principal": "me",
        "spec": {},
        "layers": [],
        "createdAtMs": 1,
        "timings": {},
        "protections": [],
        **more,
    }


def totals(total: int = 0, head: int | None = None, tail: int | None = None) -> dict[str, Any]:
    """Of an output that has ended: whole, or kept before `head` and from `tail` on."""
    return {
        "totalBytes": total,
        "headBytes": total if head is None else head,
        "tailOffset": total if tail is None else tail,
        "truncated": tail is not None,
        "ended": True,
    }


def command(state: str = "exited", **more: Any) -> dict[str, Any]:
    ended: dict[str, Any] = {"exit": exit_with(0)} if state == "exited" else {}
    return {
        "id": EXEC,
        "sandbox": SANDBOX,
        "sequence": 1,
        "command": "x",
        "state": state,
        "startedAtMs": 1,
        "runningMs": 12,
        "stdout": totals(),
        "stderr": totals(),
        **ended,
        **more,
    }


def exit_with(code: int, **more: Any) -> dict[str, Any]:
    flags = {"coreDumped": False, "timedOut": False, "oomKilled": False, "trusted": True}
    return {"exitCode": code, **flags, **more}


def started(text: str = "", **more: Any) -> dict[str, Any]:
    """The answer for a command that ended at once."""
    size = len(text.encode())
    chunk = {"offset": 0, "text": text}
    empty = {"offset": 0, "text": ""}
    return {"exec": command(stdout=totals(size), **more), "stdout": chunk, "stderr": empty}
