"""What came of a command, or of a sandbox that could not be made."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from libdsec import models_gen as models
from libdsec._core.asked import Asked, with_names
from libdsec.errors import AgentLostError, DsecError, error_of_body

SHOWN_BYTES = 2000
ENDED = ("exited", "failed", "unknown")


@dataclass(frozen=True)
class ExecResult:
    """The end of a command and its output.

    Either `exit_code` or `signal` is set. `stdout_bytes` and `stderr_bytes` hold what was written, exactly;
    where `truncated` is true they hold a beginning and an end of it, with nothing in between.
    `duration_ms`: without the time that the sandbox was paused.
    """

    exec_id: str
    exit_code: int | None
    signal: int | None
    stdout_bytes: bytes = field(repr=False)
    stderr_bytes: bytes = field(repr=False)
    timed_out: bool
    oom_killed: bool
    truncated: bool
    duration_ms: int

    @property
    def stdout(self) -> str:
        """As UTF-8, with U+FFFD where the bytes are none."""
        return self.stdout_bytes.decode("utf-8", "replace")

    @property
    def stderr(self) -> str:
        """As UTF-8, with U+FFFD where the bytes are none."""
        return self.stderr_bytes.decode("utf-8", "replace")

    @property
    def ok(self) -> bool:
        """Whether it ended by itself with exit code 0."""
        return self.exit_code == 0 and not self.timed_out

    def describe_end(self) -> str:
        """`ended with exit code 1`, for messages."""
        if self.timed_out:
            return "ran out of time"
        memory = ", out of memory" if self.oom_killed else ""
        how = (
            f"with exit code {self.exit_code}"
            if self.signal is None
            else f"by signal {self.signal}"
        )
        return f"ended {how}{memory}"

    def describe_output(self) -> str:
        """The end of what it wrote, for messages."""
        written = self.stderr_bytes or self.stdout_bytes
        return written[-SHOWN_BYTES:].decode("utf-8", "replace").strip() or "it wrote nothing"


@dataclass(frozen=True)
class SandboxFailure:
    """One of many that could not be made: its place in the call, and why."""

    index: int
    error: DsecError


class Stretch(NamedTuple):
    """Bytes of an output, by their absolute offset."""

    offset: int
    length: int


def stretches_of(totals: models.OutputTotals, limit: int) -> list[Stretch]:
    """What to read for a result: all that is kept, or of more than `limit` bytes both ends."""
    kept = [(0, totals.head_bytes), (totals.tail_offset, totals.total_bytes)]
    if totals.tail_offset <= totals.head_bytes:
        kept = [(0, totals.total_bytes)]
    over = sum(end - start for start, end in kept) - limit
    if over > 0:
        head = limit // 2
        tail_offset = max(totals.total_bytes - (limit - head), kept[-1][0])
        kept = [(0, min(head, kept[0][1])), (tail_offset, totals.total_bytes)]
    return [Stretch(start, end - start) for start, end in kept if end > start]


def is_cut(totals: models.OutputTotals, limit: int) -> bool:
    """Whether a result lacks some of the output."""
    return totals.truncated or totals.total_bytes > limit


def whole_output(
    totals: models.OutputTotals, chunk: models.OutputChunk | None, limit: int
) -> bytes | None:
    """The output where an answer held all of it."""
    if totals.total_bytes == 0:
        return b""
    if chunk is None or chunk.offset != 0 or totals.truncated or totals.total_bytes > limit:
        return None
    data = chunk_bytes(chunk)
    return data if len(data) == totals.total_bytes else None


def chunk_bytes(chunk: models.OutputChunk) -> bytes:
    """Its exact bytes."""
    return chunk.text.encode() if chunk.base64 is None else base64.b64decode(chunk.base64)


def error_of_exec(exec_: models.Exec, asked: Asked) -> DsecError | None:
    """Why a command that has ended has no result."""
    if exec_.state == "failed":
        body = None if exec_.error is None else exec_.error.model_dump(by_alias=True)
        return with_names(error_of_body(body), asked)
    if exec_.state == "unknown" or exec_.exit is None:
        return AgentLostError(
            f"nobody knows how command {exec_.id} ended: the agent of its sandbox was lost"
        )
    return None


def result_of(
    exec_: models.Exec, stdout: bytes, stderr: bytes, limit: int, asked: Asked
) -> ExecResult:
    """Raises where the command never ran, or nobody knows how it ended."""
    error = error_of_exec(exec_, asked)
    if error is not None:
        raise error
    end = exec_.exit
    assert end is not None
    return ExecResult(
        exec_id=exec_.id,
        exit_code=end.exit_code,
        signal=end.signal,
        stdout_bytes=stdout,
        stderr_bytes=stderr,
        timed_out=end.timed_out,
        oom_killed=end.oom_killed,
        truncated=is_cut(exec_.stdout, limit) or is_cut(exec_.stderr, limit),
        duration_ms=exec_.running_ms or 0,
    )


def pieces(data: bytes, size: int) -> Iterator[bytes]:
    """`data` in parts of at most `size` bytes; none of nothing."""
    for start in range(0, len(data), size):
        yield data[start : start + size]
