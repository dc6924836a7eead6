# Generated from python/libdsec/_async/session.py by `npm run generate`. Do not edit.

"""A shell that stays, inside a sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType

from libdsec import models_gen as models
from libdsec import routes_gen as routes
from libdsec._sync_gen.command import Command, run_command, start_command
from libdsec._sync_gen.transport import Transport
from libdsec._core.request import build_request
from libdsec._core.result import ExecResult
from libdsec._core.spec import exec_spec
from libdsec.errors import DsecError, NotFoundError, StateConflictError


class Session:
    """A shell that keeps its directory and variables between commands. Leaving it as a context closes it.

    What it says about its commands is the sandbox's own word, so no score should rest on it.
    `info`: as it was opened.
    """

    info: models.Session

    def __init__(self, transport: Transport, info: models.Session) -> None:
        self._transport = transport
        self.info = info

    @property
    def id(self) -> str:
        return self.info.id

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id}>"

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.close()
        except DsecError:
            if error is None:
                raise

    def exec(
        self,
        command: str,
        *,
        stdin: bytes | str | None = None,
        timeout: float | None = None,
        check: bool = False,
        max_output_bytes: int | None = None,
    ) -> ExecResult:
        """Runs a text in the shell, after those before it. As `Sandbox.exec` otherwise."""
        spec = exec_spec(
            command, session=self.id, timeout=timeout, max_output_bytes=max_output_bytes
        )
        return run_command(
            self._transport,
            self.info.sandbox,
            spec,
            stdin=stdin,
            check=check,
            max_output_bytes=max_output_bytes,
        )

    def start(
        self,
        command: str,
        *,
        stdin: bool = False,
        timeout: float | None = None,
        max_output_bytes: int | None = None,
    ) -> Command:
        """The same without waiting. As `Sandbox.start` otherwise."""
        spec = exec_spec(
            command,
            session=self.id,
            stdin=stdin or None,
            timeout=timeout,
            max_output_bytes=max_output_bytes,
        )
        started, _ = start_command(self._transport, self.info.sandbox, spec)
        return started

    def close(self) -> None:
        """Ends the shell and every process that it has left. Does nothing where that was done."""
        params = {"sandboxId": self.info.sandbox, "sessionId": self.id}
        try:
            self._transport.run(build_request(routes.CLOSE_SESSION, params))
        except (NotFoundError, StateConflictError):
            # It went with its sandbox.
            pass


def open_session(
    transport: Transport,
    sandbox: str,
    *,
    shell: list[str] | None,
    cwd: str | None,
    env: Mapping[str, str] | None,
    user: str | None,
) -> Session:
    """Opens a shell."""
    variables = None if env is None else dict(env)
    body = models.SessionSpec(shell=shell, cwd=cwd, env=variables, user=user)
    request = build_request(routes.OPEN_SESSION, {"sandboxId": sandbox}, body=body)
    return Session(transport, transport.call(models.Session, request))
