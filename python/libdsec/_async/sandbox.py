"""One sandbox."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel
from typing_extensions import Unpack

from libdsec import models_gen as models
from libdsec import routes_gen as routes
from libdsec._async.command import WAIT_S, AsyncCommand, run_command, start_command
from libdsec._async.connection import AsyncConnection
from libdsec._async.files import AsyncFiles
from libdsec._async.grade import grade_sandbox
from libdsec._async.session import AsyncSession, open_session
from libdsec._async.transport import AsyncTransport
from libdsec._core import async_io
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
    from libdsec._async.client import AsyncClient

TIMEOUT_S = 60.0


class AsyncSandbox:
    """An isolated machine. Leaving it as a context stops it.

    Made by `AsyncClient.create` and `get`, or by `AsyncSandbox.create` with a client of its own.
    `info`: what was last heard of it; `refresh` asks. `files`: its files.
    """

    info: models.Sandbox
    files: AsyncFiles

    def __init__(
        self, transport: AsyncTransport, info: models.Sandbox, *, owns_transport: bool = False
    ) -> None:
        self._transport = transport
        self._owns_transport = owns_transport
        self.info = info
        self.files = AsyncFiles(transport, info.id)

    @classmethod
    async def create(
        cls,
        environment: str | None = None,
        *,
        client: AsyncClient | None = None,
        url: str | None = None,
        api_key: str | None = None,
        **options: Unpack[CreateOptions],
    ) -> AsyncSandbox:
        """Makes a sandbox as `AsyncClient.create` does: with a client that is given, or one of its own.

        Its own finds its server as `AsyncClient` does, and is closed with the context.
        """
        if client is not None:
            return cls(
                client._transport, await create_sandbox(client._transport, environment, options)
            )
        transport = AsyncTransport(find_server(url, api_key), TIMEOUT_S)
        try:
            info = await create_sandbox(transport, environment, options)
        except BaseException:
            await transport.close()
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

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            await self.stop()
        except NotFoundError:
            # It ended long ago.
            pass
        except DsecError:
            # What went wrong first is what the caller wants to know; a TTL ends the sandbox.
            if error is None:
                raise
        finally:
            if self._owns_transport:
                await self._transport.close()

    async def refresh(self) -> AsyncSandbox:
        """Asks how it is now; returns itself, as everything that changes it does."""
        return await self._update(routes.GET_SANDBOX)

    async def wait(
        self, state: Literal["running", "ended"] = "ended", timeout: float | None = None
    ) -> AsyncSandbox:
        """Waits until it runs, or has ended; returns itself. `timeout`: seconds; then `Timeout`.

        Raises `StateConflictError`, which says why it ended, when it should run and will not any more.
        """
        deadline = Deadline(timeout)
        await self.refresh()
        while self.state != state and not self._has_ended:
            if deadline.is_over:
                raise deadline.error()
            wait = deadline.at_most(WAIT_S)
            query = {"afterRevision": self.info.revision, "waitMs": milliseconds(wait)}
            request = build_request(routes.GET_SANDBOX, self._params, query=query)
            self.info = await self._transport.call(models.Sandbox, request, wait=wait + 1)
        if state == "running" and self._has_ended:
            why = self.info.end_reason if self.info.error is None else self.info.error.message
            raise StateConflictError(f"the sandbox {self.id} has ended: {why}")
        return self

    async def exec(
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
        return await run_command(
            self._transport,
            self.id,
            spec,
            stdin=stdin,
            check=check,
            max_output_bytes=max_output_bytes,
        )

    async def run_shell(
        self,
        command: str,
        *,
        timeout: float | None = None,
        check: bool = False,
        max_output_bytes: int | None = None,
    ) -> ExecResult:
        """The report's name for `exec` of a text."""
        return await self.exec(
            command, timeout=timeout, check=check, max_output_bytes=max_output_bytes
        )

    async def start(
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
    ) -> AsyncCommand:
        """Starts a command and does not wait for it. As `exec` otherwise.

        `stdin`: keep its input open for `AsyncCommand.write`. `pty`: give it a terminal of this size.
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
        started, _ = await start_command(self._transport, self.id, spec, idempotency_key)
        return started

    async def grade(
        self,
        *,
        on_stage: Callable[[str], None] | None = None,
        **options: Unpack[GradeOptions],
    ) -> models.GradeReport:
        """Grades what it has under the solution paths, in a new sandbox of its environment.

        Needs a key with the scope `grading`. Raises `GradeInvalidError` where the run is no score.
        """
        return await grade_sandbox(self._transport, self._params, grade_request(options), on_stage)

    def commands(
        self, *, limit: int | None = None, page_size: int | None = None
    ) -> AsyncIterator[AsyncCommand]:
        """Its commands, in the order of their start. `limit`: the most; `page_size`: at a time."""
        return self._transport.items(
            models.ExecPage,
            lambda page: build_request(routes.LIST_EXECS, self._params, query=page),
            lambda page: [
                AsyncCommand(self._transport, info, stdin_offset=None) for info in page.execs
            ],
            limit,
            page_size,
        )

    async def command(self, exec_id: str) -> AsyncCommand:
        """A command by its id."""
        request = build_request(routes.GET_EXEC, {**self._params, "execId": exec_id})
        info = await self._transport.call(models.Exec, request)
        return AsyncCommand(self._transport, info, stdin_offset=None)

    async def session(
        self,
        *,
        shell: CommandLine | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> AsyncSession:
        """Opens a shell that keeps its directory and variables between commands.

        `shell`: the program and its arguments; that of the sandbox, where absent.
        """
        argv = [shell] if isinstance(shell, str) else None if shell is None else [*shell]
        return await open_session(self._transport, self.id, shell=argv, cwd=cwd, env=env, user=user)

    async def connect(self, port: int) -> AsyncConnection:
        """A connection to a TCP port inside. `UnavailableError` where nothing listens on it."""
        request = build_request(routes.CONNECT_PORT, {**self._params, "port": port})
        return AsyncConnection(await self._transport.socket(request, is_bounded=False))

    async def pause(self) -> AsyncSandbox:
        """Freezes it and takes its memory back. The next operation resumes it."""
        return await self._update(routes.PAUSE_SANDBOX)

    async def resume(self) -> AsyncSandbox:
        """Lets it run on."""
        return await self._update(routes.RESUME_SANDBOX)

    async def stop(self) -> AsyncSandbox:
        """Stops it and removes everything it held. It stays listed for a while as stopped."""
        return await self._update(routes.STOP_SANDBOX)

    async def renew(self, ttl: models.Ttl | Mapping[str, Any]) -> AsyncSandbox:
        """Sets what ends it by itself: `idle_ms`, `lifetime_ms`, `grace_ms`, counted from now on."""
        return await self._update(routes.RENEW_SANDBOX, as_model(models.Ttl, ttl))

    async def set_stage(self, stage: Stage, *, loosen: bool = False) -> AsyncSandbox:
        """Switches to another stage of its policy.

        One that hides a path, or takes away something else that a process could keep, ends its commands and
        sessions first. `loosen`: also to one that allows more, which takes a key with the scope
        `policies:loosen` (`PermissionDeniedError`).
        """
        route = routes.LOOSEN_SANDBOX_STAGE if loosen else routes.SET_SANDBOX_STAGE
        return await self._update(route, as_model(models.StageSwitch, {"stage": stage}))

    async def set_network(
        self,
        rules: Sequence[models.NetworkRule | Mapping[str, Any]],
        *,
        version: int | None = None,
    ) -> AsyncSandbox:
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
        return await self._update(routes.UPDATE_NETWORK, body)

    @property
    def _has_ended(self) -> bool:
        return self.info.state in ("stopped", "failed")

    @property
    def _params(self) -> dict[str, str]:
        return {"sandboxId": self.info.id}

    async def _update(self, route: Route, body: BaseModel | None = None) -> AsyncSandbox:
        request = build_request(route, self._params, body=body)
        self.info = await self._transport.call(models.Sandbox, request)
        return self


async def create_sandbox(
    transport: AsyncTransport, environment: str | None, options: Mapping[str, Any]
) -> models.Sandbox:
    """Makes a sandbox, once, however often the request has to be sent."""
    body = as_model(models.SandboxCreate, spec_fields(environment, options))
    request = build_request(routes.CREATE_SANDBOX, body=body, key=options.get("idempotency_key"))
    return await transport.call(models.Sandbox, request, options.get("timeout"))


async def create_sandboxes(
    transport: AsyncTransport, count: int, environment: str | None, options: Mapping[str, Any]
) -> AsyncGenerator[AsyncSandbox | SandboxFailure, None]:
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
            async with transport.open(request, deadline) as response:
                backoff.opened()
                async with aclosing(transport.lines(response, models.SandboxBatchItem)) as items:
                    async for item in items:
                        if item.index in told:
                            continue
                        told.add(item.index)
                        backoff.reset()
                        if item.sandbox is not None:
                            yield AsyncSandbox(transport, item.sandbox)
                        elif item.error is not None:
                            error = error_of_body(item.error.model_dump(by_alias=True))
                            yield SandboxFailure(item.index, error)
            if len(told) < count:
                raise UnavailableError(f"only {len(told)} of {count} sandboxes were told of")
        except DsecError as error:
            await async_io.sleep(backoff.after(error))
