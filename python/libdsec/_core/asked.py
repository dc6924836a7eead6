"""What a call was about, for its errors: a sandbox does not repeat the names that it was given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Optional

from libdsec._core.error import DsecError

SHOWN_LENGTH = 200


@dataclass(frozen=True)
class Asked:
    """`path`: in a sandbox; of a move both."""

    sandbox: Optional[str] = None
    key: Optional[str] = None
    path: Optional[str] = None
    program: Optional[str] = None
    cwd: Optional[str] = None
    user: Optional[str] = None


def asked_of(fields: Mapping[str, Any]) -> Asked:
    """The names in what is sent to a server, by its own names for them."""
    path = _text(fields.get("path"))
    source, target = _text(fields.get("source")), _text(fields.get("target"))
    if path is None and source is not None and target is not None:
        path = f"{_shown(source)} → {_shown(target)}"
    argv = fields.get("argv")
    program = "/bin/sh" if fields.get("shell") and not fields.get("session") else None
    return Asked(
        sandbox=_text(fields.get("sandboxId")),
        key=_text(fields.get("keyId")),
        path=path,
        program=_text(argv[0]) if argv else program,
        cwd=_text(fields.get("cwd")),
        user=_text(fields.get("user")),
    )


def with_names(error: DsecError, asked: Asked) -> DsecError:
    """The same error, its message with what was asked for."""
    error.message = _message_for(error, asked)
    error.args = (error.message,)
    return error


def _message_for(error: DsecError, asked: Asked) -> str:
    message = error.message
    step, _, why = message.partition(": ")
    by_kernel = "errno" in error.details

    def names(name: str | None) -> str | None:
        return None if not name or name in message else _shown(name)

    if step in ("there is no such sandbox", "there is no such key"):
        name = names(asked.key if step.endswith("key") else asked.sandbox)
        return message if name is None else f"{message}: {name}"
    if step == "no such user or group" and by_kernel:
        return step if asked.user is None else f"{step}: {_shown(asked.user)}"
    if step == "command":
        name = names(asked.program)
        return message if name is None else f"{name}: {why}"
    if step == "working directory":
        name = names(asked.cwd)
        return message if name is None else f"{step} {name}: {why}"
    # Only what the sandbox says of a file has a number of the kernel.
    name = names(asked.path) if by_kernel else None
    return message if name is None else f"{name}: {message}"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _shown(name: str) -> str:
    safe = "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in name[:SHOWN_LENGTH])
    return safe if len(safe) < SHOWN_LENGTH else f"{safe[: SHOWN_LENGTH - 1]}…"
