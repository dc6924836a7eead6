# Generated from python/libdsec/_async/sandbox.py by `npm run generate`. Do not edit.

"""One sandbox."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Callable, Mapping, Sequence
from contextlib import closing
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel
from typing_extensions import Unpack

from libdsec import models_gen as models
from libdsec import routes_gen as routes
from libdsec._sync_gen.command import WAIT_S, Command, run_command, start_command
from libdsec._sync_gen.connection import Connection
from libdsec._sync_gen.files import Files
from libdsec._sync_gen.grade import grade_sandbox
from libdsec._sync_gen.session import Session, open_session
from libdsec._sync_gen.transport import Transport
from libdsec._core import sync_io
from libdsec._core.config import find_server
from libdsec._core.request import build_request, new_key
from libdsec._core.result import ExecResult, SandboxFailure
from libdsec._core.retry import Deadline
from libdsec._core.route import Route
from libdsec._core.spec import (
    CommandLine,
    CreateOptions,
    GradeOptions,
    SandboxState,
    Stage,
    as_model,
    exec_spec,
    grade_request,
    milliseconds,
    spec_fields,
)
from libdsec.errors import (
    DsecError,
    NotFoundError,
    StateConflictError,
    UnavailableError,
    UnsupportedError,
    error_of_body,
)

if TYPE_CHECKING:
    from libdsec._sync_gen.client import Client

TIMEOUT_S = 60.0


class Sandbox:
    """An isolated machine. Leaving it as a context stops it.

    Made by `Client.create` and `get`, or by `Sandbox.create` with a client of its own.
    `info`: what was last heard of it; `refresh` asks. `files`: its files.
    """

    info: models.Sandbox
    files: Files

    def __init__(
        self, transport: Transport, info: models.Sandbox, *, owns_transport: bool = False
    ) -> None:
        self._transport = transport
        self._owns_transport = owns_transport
        self.info = info
        self.files = Files(transport, info.id)

    @classmethod
    def create(
        cls,
        environment: str | None = None,
        *,
        client: Client | None = None,
        url: str | None = None,
        api_key: str | None = None,
        **options: Unpack[CreateOptions],
    ) -> Sandbox:
        """Makes a sandbox as `Client.create` does: with a client that is given, or one of its own.

        Its own finds its server as `Client` does, and is closed with the context.
        """
        if client is not None:
            return cls(
                client._transport, create_sandbox(client._transport, environment, options)
            )
        transport = Transport(find_server(url, api_key), TIMEOUT_S)
        try:
            info = create_sandbox(transport, environment, options)
        except BaseException:
            transport.close()
            raise
        return cls(transport, info, owns_transport=True)

    @property
    def id(self) -> str:
        return self.info.id

    @property
    def state(self) -> SandboxState:
        """By what was last heard; `refresh` asks."""
        return self.info.state

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.state}>"

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self.stop()
        except NotFoundError:
            # It ended long ago.
            pass
        except DsecError:
            # What went wrong first is what the caller wants to know; a TTL ends the sandbox.
            if error is None:
                raise
        finally:
            if self._owns_transport:
                self._transport.close()

    def refresh(self) -> Sandbox:
        """Asks how it is now; returns itself, as everything that changes it does."""
        return self._update(routes.GET_SANDBOX)

    def wait(
        self, state: Literal["running", "ended"] = "ended", timeout: float | None = None
    ) -> Sandbox:
        """Waits until it runs, or has ended; returns itself. `timeout`: seconds; then `Timeout`.

        Raises `StateConflictError`, which says why it ended, when it should run and will not any more.
        """
        deadline = Deadline(timeout)
        self.refresh()
        while self.state != state and not self._has_ended:
            if deadline.is_over:
                raise deadline.error()
            wait = deadline.at_most(WAIT_S)
            query = {"afterRevision": self.info.revision, "waitMs": milliseconds(wait)}
            request = build_request(routes.GET_SANDBOX, self._params, query=query)
            self.info = self._transport.call(models.Sandbox, request, wait=wait + 1)
        if state == "running" and self._has_ended:
            why = self.info.end_reason if self.info.error is None else self.info.error.message
            raise StateConflictError(f"the sandbox {self.id} has ended: {why}")
        return self

    def exec(
        self,
        command: CommandLine,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        stdin: bytes | str | None = None,
        timeout: float | None = None,
        check: bool = False,
        max_output_bytes: int | None = None,
    ) -> ExecResult:
        """Runs a command to its end. A text goes to `/bin/sh -c`, a list is a program and its arguments.

        `stdin`: all of its input. `timeout`: seconds of running time, after which every process of it is
        killed; the result then has `timed_out` and what was written. `check`: raise `CommandFailed` unless
        it ends with 0. `max_output_bytes`: kept of each stream, a beginning and an end. Raises
        `CommandNotFoundError`, `StateConflictError` where the sandbox has ended, `AgentLostError` where
        nobody knows how the command ended.
        """
        spec = exec_spec(
            command,
            cwd=cwd,
            env=None if env is None else dict(env),
            user=user,
            timeout=timeout,
            max_output_bytes=max_output_bytes,
        )
        return run_command(
            self._transport,
            self.id,
            spec,
            stdin=stdin,
            check=check,
            max_output_bytes=max_output_bytes,
        )

    def run_shell(
        self,
        command: str,
        *,
        timeout: float | None = None,
        check: bool = False,
        max_output_bytes: int | None = None,
    ) -> ExecResult:
        """The report's name for `exec` of a text."""
        return self.exec(
            command, timeout=timeout, check=check, max_output_bytes=max_output_bytes
        )

    def start(
        self,
        command: CommandLine,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
        stdin: bool = False,
        pty: models.PtySize | Mapping[str, Any] | None = None,
        timeout: float | None = None,
        max_output_bytes: int | None = None,
        idempotency_key: str | None = None,
    ) -> Command:
        """Starts a command and does not wait for it. As `exec` otherwise.

        `stdin`: keep its input open for `Command.write`. `pty`: give it a terminal of this size.
        """
        spec = exec_spec(
            command,
            cwd=cwd,
            env=None if env is None else dict(env),
            user=user,
            stdin=stdin or None,
            pty=None if pty is None else as_model(models.PtySize, pty),
            timeout=timeout,
            max_output_bytes=max_output_bytes,
        )
        started, _ = start_command(self._transport, self.id, spec, idempotency_key)
        return started

    def grade(
        self,
        *,
        on_stage: Callable[[str], None] | None = None,
        **options: Unpack[GradeOptions],
    ) -> models.GradeReport:
        """Grades what it has under the solution paths, in a new sandbox of its environment.

        Needs a key with the scope `grading`. Raises `GradeInvalidError` where the run is no score.
        """
        return grade_sandbox(self._transport, self._params, grade_request(options), on_stage)

    def commands(
        self, *, limit: int | None = None, page_size: int | None = None
    ) -> Iterator[Command]:
        """Its commands, in the order of their start. `limit`: the most; `page_size`: at a time."""
        return self._transport.items(
            models.ExecPage,
            lambda page: build_request(routes.LIST_EXECS, self._params, query=page),
            lambda page: [
                Command(self._transport, info, stdin_offset=None) for info in page.execs
            ],
            limit,
            page_size,
        )

    def command(self, exec_id: str) -> Command:
        """A command by its id."""
        request = build_request(routes.GET_EXEC, {**self._params, "execId": exec_id})
        info = self._transport.call(models.Exec, request)
        return Command(self._transport, info, stdin_offset=None)

    def session(
        self,
        *,
        shell: CommandLine | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> Session:
        """Opens a shell that keeps its directory and variables between commands.

        `shell`: the program and its arguments; that of the sandbox, where absent.
        """
        argv = [shell] if isinstance(shell, str) else None if shell is None else [*shell]
        return open_session(self._transport, self.id, shell=argv, cwd=cwd, env=env, user=user)

    def connect(self, port: int) -> Connection:
        """A connection to a TCP port inside. `UnavailableError` where nothing listens on it."""
        request = build_request(routes.CONNECT_PORT, {**self._params, "port": port})
        return Connection(self._transport.socket(request, is_bounded=False))

    def pause(self) -> Sandbox:
        """Freezes it and takes its memory back. The next operation resumes it."""
        return self._update(routes.PAUSE_SANDBOX)

    def resume(self) -> Sandbox:
        """Lets it run on."""
        return self._update(routes.RESUME_SANDBOX)

    def stop(self) -> Sandbox:
        """Stops it and removes everything it held. It stays listed for a while as stopped."""
        return self._update(routes.STOP_SANDBOX)

    def renew(self, ttl: models.Ttl | Mapping[str, Any]) -> Sandbox:
        """Sets what ends it by itself: `idle_ms`, `lifetime_ms`, `grace_ms`, counted from now on."""
        return self._update(routes.RENEW_SANDBOX, as_model(models.Ttl, ttl))

    def set_stage(self, stage: Stage, *, loosen: bool = False) -> Sandbox:
        """Switches to another stage of its policy.

        One that hides a path, or takes away something else that a process could keep, ends its commands and
        sessions first. `loosen`: also to one that allows more, which takes a key with the scope
        `policies:loosen` (`PermissionDeniedError`).
        """
        route = routes.LOOSEN_SANDBOX_STAGE if loosen else routes.SET_SANDBOX_STAGE
        return self._update(route, as_model(models.StageSwitch, {"stage": stage}))

    def set_network(
        self,
        rules: Sequence[models.NetworkRule | Mapping[str, Any]],
        *,
        version: int | None = None,
    ) -> Sandbox:
        """Replaces what it may reach; connections that the rules do not open are cut before it returns.

        For one that was created with rules; no rules at all shut everything. `version`: of the rules that
        are replaced; those in `info.network`, where absent. `ConflictError` where others are in force.
        """
        known = self.info.network
        if version is None and known is None:
            raise UnsupportedError(
                "the sandbox has no network: rules can be changed where it was created with some",
                details={"field": "network"},
            )
        seen = known.version if version is None and known is not None else version
        body = as_model(
            models.NetworkUpdate,
            {"version": seen, "rules": [as_model(models.NetworkRule, rule) for rule in rules]},
        )
        return self._update(routes.UPDATE_NETWORK, body)

    @property
    def _has_ended(self) -> bool:
        return self.info.state in ("stopped", "failed")

    @property
    def _params(self) -> dict[str, str]:
        return {"sandboxId": self.info.id}

    def _update(self, route: Route, body: BaseModel | None = None) -> Sandbox:
        request = build_request(route, self._params, body=body)
        self.info = self._transport.call(models.Sandbox, request)
        return self


def create_sandbox(
    transport: Transport, environment: str | None, options: Mapping[str, Any]
) -> models.Sandbox:
    """Makes a sandbox, once, however often the request has to be sent."""
    body = as_model(models.SandboxCreate, spec_fields(environment, options))
    request = build_request(routes.CREATE_SANDBOX, body=body, key=options.get("idempotency_key"))
    return transport.call(models.Sandbox, request, options.get("timeout"))


def create_sandboxes(
    transport: Transport, count: int, environment: str | None, options: Mapping[str, Any]
) -> Generator[Sandbox | SandboxFailure, None, None]:
    """Makes many, each told when it is ready. After a lost connection the same request goes on."""
    spec = as_model(models.SandboxSpec, spec_fields(environment, options))
    body = models.SandboxBatchCreate(count=count, spec=spec)
    key = options.get("idempotency_key") or new_key()
    request = build_request(routes.CREATE_SANDBOXES, body=body, key=key)
    timeout = options.get("timeout")
    deadline = Deadline(timeout)
    backoff = transport.patience(deadline)
    told: set[int] = set()
    while len(told) < count:
        try:
            with transport.open(request, deadline) as response:
                backoff.opened()
                with closing(transport.lines(response, models.SandboxBatchItem)) as items:
                    for item in items:
                        if item.index in told:
                            continue
                        told.add(item.index)
                        backoff.reset()
                        if item.sandbox is not None:
                            yield Sandbox(transport, item.sandbox)
                        elif item.error is not None:
                            error = error_of_body(item.error.model_dump(by_alias=True))
                            yield SandboxFailure(item.index, error)
            if len(told) < count:
                raise UnavailableError(f"only {len(told)} of {count} sandboxes were told of")
        except DsecError as error:
            sync_io.sleep(backoff.after(error))
