"""All errors: the base, a class for each code of the table, and what only a client can meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from libdsec import errors_gen
from libdsec._core.error import Details, DsecError
from libdsec.errors_gen import *  # noqa: F403
from libdsec.errors_gen import ERROR_CLASSES, DeadlineExceededError

if TYPE_CHECKING:
    from libdsec._core.result import ExecResult


class Timeout(DeadlineExceededError, TimeoutError):
    """The time that the caller gave a call is up. What the call asked for may still happen."""


class CommandFailed(Exception):
    """A command that was to be checked did not end with exit code 0: its own doing, not that of DSec.

    `result`: all that is known of it, its output included.
    """

    def __init__(self, result: ExecResult) -> None:
        super().__init__(f"the command {result.describe_end()}: {result.describe_output()}")
        self.result = result

    def __reduce__(self) -> Any:
        return CommandFailed, (self.result,)


def error_of_body(body: object, *, status: int = 500, request_id: str | None = None) -> DsecError:
    """The error that a body says. One whose code is not known here keeps that code in the base class."""
    fields = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
    code = fields.get("code")
    if not isinstance(code, str):
        return unreadable(status, request_id)
    kind = ERROR_CLASSES.get(code, DsecError)
    details: Any = fields.get("details")
    error = kind(
        str(fields.get("message", "error without a message")),
        details=cast("dict[str, Any]", details) if isinstance(details, dict) else None,
        request_id=request_id,
    )
    if kind is DsecError:
        error.code, error.status = code, status
    error.retryable = bool(fields.get("retryable", kind.retryable))
    error.remedy = str(fields.get("remedy", kind.remedy))
    return error


def unreadable(status: int, request_id: str | None) -> DsecError:
    """For a response that no server of DSec gives: there is another program, or a proxy, in between."""
    code = {
        401: "unauthenticated",
        403: "permission-denied",
        404: "not-found",
        429: "rate-limited",
    }.get(status, "unavailable" if status in (502, 503, 504) else "protocol")
    return ERROR_CLASSES[code](
        f"the server answered {status} without an error of DSec", request_id=request_id
    )


__all__ = [
    "CommandFailed",
    "Details",
    "DsecError",
    "ERROR_CLASSES",
    "Timeout",
    "error_of_body",
]
__all__ += errors_gen.__all__
