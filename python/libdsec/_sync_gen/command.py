# Generated from python/libdsec/_async/command.py by `npm run generate`. Do not edit.

"""One command of a sandbox."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from pydantic import BaseModel

from libdsec import models_gen as models
from libdsec import routes_gen as routes
from libdsec._sync_gen.transport import Transport
from libdsec._core import sync_io
from libdsec._core.asked import Asked
from libdsec._core.attach import OutputAttachment, OutputChunk
from libdsec._core.request import Request, Value, build_request
from libdsec._core.result import (
    ENDED,
    ExecResult,
    error_of_exec,
    pieces,
    result_of,
    stretches_of,
    whole_output,
)
from libdsec._core.retry import Deadline
from libdsec._core.route import Route
from libdsec._core.spec import OUTPUT_BYTES_MAX, OutputStream, as_bytes, milliseconds
from libdsec.errors import (
    CommandFailed,
    DsecError,
    OutputLostError,
    StateConflictError,
    UnavailableError,
)

# Of one wait; the server allows 60.
WAIT_S = 30.0
STDIN_PIECE_BYTES = 1024 * 1024
SIGKILL = 9
KEPT_ATTEMPTS = 3


class Command:
    """A command that has been started, as `Sandbox.start` returns it. Its output outlives connections.

    `info`: what was last heard of it; `refresh` asks.
    """

    info: models.Exec

    def __init__(
        self,
        transport: Transport,
        info: models.Exec,
        stdin_offset: int | None = 0,
        asked: Asked | None = None,
    ) -> None:
        self._transport = transport
        self._stdin_offset = stdin_offset
        self._asked = asked or Asked(program=info.command)
        self.info = info

    @property
    def id(self) -> str:
        return self.info.id

    @property
    def has_ended(self) -> bool:
        """By what was last heard; `refresh` asks."""
        return self.info.state in ENDED

    @property
    def error(self) -> DsecError | None:
        """Why it never ran, or nobody knows how it ended: what `wait` raises. As `info`, of that moment."""
        return error_of_exec(self.info, self._asked) if self.has_ended else None

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.info.state}>"

    def refresh(self) -> Command:
        """Asks how it is now; returns itself."""
        self.info = self._transport.call(models.Exec, self._request(routes.GET_EXEC))
        return self

    def wait(
        self, timeout: float | None = None, *, max_output_bytes: int = OUTPUT_BYTES_MAX
    ) -> ExecResult:
        """Waits for its end, and reads its output: at most so many bytes of each stream.

        Raises `Timeout` after `timeout` seconds (the command runs on); the error with which it failed to
        start, such as `CommandNotFoundError`; `AgentLostError` where nobody knows how it ended.
        """
        self._wait_for_end(Deadline(timeout))
        return self._result(max_output_bytes)

    def stream(
        self, *, stdout_offset: int = 0, stderr_offset: int = 0, skip_lost: bool = False
    ) -> Iterator[OutputChunk]:
        """Its output from the beginning (or from offsets on) to its end, both streams, as it comes.

        Takes as much memory for any amount of output. No command waits for it: `max_output_bytes` of
        `start` says how much is kept for a reader that is slower. A lost connection is made anew where it
        was lost. Raises `OutputLostError` where output is no longer kept, or with `skip_lost` goes on behind
        that, which the offsets tell. How the command ended is then in `info`.
        """
        output = OutputAttachment(stdout_offset, stderr_offset, skip_lost=skip_lost)
        backoff = self._transport.patience()
        while output.end is None:
            try:
                request = self._request(routes.ATTACH_EXEC, output.query())
                socket = self._transport.socket(request)
                backoff.opened()
                try:
                    while output.end is None:
                        message = socket.receive()
                        if message is None:
                            raise UnavailableError("the WebSocket ended before the command did")
                        chunk = output.receive(message)
                        if chunk is None:
                            continue
                        backoff.reset()
                        yield chunk
                        acknowledgement = output.acknowledgement(chunk.stream)
                        if acknowledgement is not None:
                            socket.send(acknowledgement)
                finally:
                    socket.close()
            except DsecError as error:
                sync_io.sleep(backoff.after(error))
        self.info = output.end

    def output(
        self, stream: OutputStream = "stdout", *, offset: int = 0
    ) -> Iterator[bytes]:
        """The bytes of one stream from an absolute offset to its end, as they come.

        Raises `OutputLostError` where bytes are no longer kept; `details["offset"]` says from where on they
        are.
        """

        def request_at(at: int) -> Request:
            return self._request(
                routes.READ_EXEC_OUTPUT, {"stream": stream, "offset": at, "follow": True}
            )

        for data in self._transport.resumed(Deadline(None), request_at, offset):
            yield data

    def write(self, data: bytes | str) -> None:
        """Writes to its standard input, and waits until it is taken. It was started with `stdin=True`.

        Raises `StateConflictError` when it has ended, or its input has.
        """
        for piece in pieces(as_bytes(data), STDIN_PIECE_BYTES):
            self._send_stdin(piece, end=False)

    def close_stdin(self) -> None:
        """Says that no more input comes. Does nothing when it has ended."""
        self._send_stdin(b"", end=True)

    def signal(self, signal: int, scope: Literal["leader", "tree"] = "tree") -> None:
        """Sends a signal to every process that it has started, or to its first one alone.

        Raises `StateConflictError` when it has ended.
        """
        body = models.SignalRequest(signal=signal, scope=scope)
        self._transport.run(self._request(routes.SIGNAL_EXEC, body=body))

    def kill(self) -> None:
        """Kills every process that it has started. Does nothing when it has ended."""
        try:
            self.signal(SIGKILL)
        except StateConflictError:
            self.refresh()
            if not self.has_ended:
                raise

    def resize(self, rows: int, columns: int) -> None:
        """Sets the size of its terminal. `InvalidArgumentError` where it has none."""
        body = models.PtySize(rows=rows, columns=columns)
        self._transport.run(self._request(routes.RESIZE_EXEC, body=body))

    def set_timeout(self, timeout_ms: int | None) -> None:
        """Sets how long it may run in all, in milliseconds from its start; `None`: as long as it likes."""
        body = models.TimeoutRequest(timeout_ms=timeout_ms)
        self._transport.run(self._request(routes.SET_EXEC_TIMEOUT, body=body))

    def _request(
        self,
        route: Route,
        query: Mapping[str, Value] | None = None,
        body: BaseModel | None = None,
    ) -> Request:
        params = {"sandboxId": self.info.sandbox, "execId": self.info.id}
        return build_request(route, params, query=query, body=body)

    def _wait_for_end(self, deadline: Deadline) -> None:
        while not self.has_ended:
            wait = deadline.at_most(WAIT_S)
            request = self._request(routes.GET_EXEC, {"waitMs": milliseconds(wait)})
            self.info = self._transport.call(models.Exec, request, wait=wait + 1)
            if not self.has_ended and deadline.is_over:
                raise deadline.error()

    def _result(self, limit: int, started: models.ExecStarted | None = None) -> ExecResult:
        """Of one that has ended. `started` may hold the output already."""
        output: list[bytes] = []
        for stream in ("stdout", "stderr"):
            totals: models.OutputTotals = getattr(self.info, stream)
            inline: models.OutputChunk | None = getattr(started, stream, None)
            data = whole_output(totals, inline, limit)
            output.append(self._kept(stream, limit) if data is None else data)
        return result_of(self.info, output[0], output[1], limit, self._asked)

    def _kept(self, stream: OutputStream, limit: int) -> bytes:
        """Both ends of what is kept. A process that was left behind may write, which moves the second one."""
        for attempt in range(KEPT_ATTEMPTS):
            if attempt > 0:
                self.refresh()
            totals: models.OutputTotals = getattr(self.info, stream)
            stretches = stretches_of(totals, limit)
            try:
                data = b"".join([self._read(stream, *stretch) for stretch in stretches])
            except OutputLostError:
                continue
            if len(data) == sum(stretch.length for stretch in stretches):
                return data
        raise OutputLostError(f"the {stream} of command {self.id} changes while it is read")

    def _read(self, stream: OutputStream, offset: int, length: int) -> bytes:
        end = offset + length

        def request_at(at: int) -> Request:
            query = {"stream": stream, "offset": at, "lengthBytes": end - at}
            return self._request(routes.READ_EXEC_OUTPUT, query)

        parts = [data for data in self._transport.resumed(Deadline(None), request_at, offset)]
        return b"".join(parts)

    def _send_stdin(self, data: bytes, *, end: bool) -> None:
        """A command may take its time to read: as long as it runs there is no limit."""
        if self._stdin_offset is None:
            self._stdin_offset = self._stdin_taken(0, b"", end=False)
        while True:
            try:
                self._stdin_taken(self._stdin_offset, data, end=end)
                self._stdin_offset += len(data)
                return
            except UnavailableError:
                self.refresh()
                if self.has_ended:
                    return

    def _stdin_taken(self, offset: int, data: bytes, *, end: bool) -> int:
        query = {"offset": offset, "end": end or None}
        request = self._request(routes.WRITE_EXEC_STDIN, query).with_bytes(data)
        return (self._transport.call(models.StdinAccepted, request)).offset


def start_command(
    transport: Transport, sandbox: str, spec: models.ExecSpec, key: str | None = None
) -> tuple[Command, models.ExecStarted]:
    """Starts a command, once, however often the request has to be sent."""
    request = build_request(routes.START_EXEC, {"sandboxId": sandbox}, body=spec, key=key)
    wait = (spec.wait_ms or 0) / 1000
    started = transport.call(models.ExecStarted, request, wait=wait)
    return Command(transport, started.exec, asked=request.asked), started


def run_command(
    transport: Transport,
    sandbox: str,
    spec: models.ExecSpec,
    *,
    stdin: bytes | str | None,
    check: bool,
    max_output_bytes: int | None,
) -> ExecResult:
    """Runs a command to its end: one round trip for one that is short and writes little."""
    if stdin is None:
        spec.wait_ms = milliseconds(WAIT_S)
    else:
        spec.stdin = True
    command, started = start_command(transport, sandbox, spec)
    if stdin is not None:
        try:
            command.write(stdin)
            command.close_stdin()
        except StateConflictError:
            # It has ended without reading all of it.
            pass
    command._wait_for_end(Deadline(None))
    limit = OUTPUT_BYTES_MAX if max_output_bytes is None else max_output_bytes
    result = command._result(limit, started)
    if check and not result.ok:
        raise CommandFailed(result)
    return result
