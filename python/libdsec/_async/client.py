"""The entry to a server of DSec."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from types import TracebackType
from typing import Literal, overload

from typing_extensions import Unpack

from libdsec import models_gen as models
from libdsec import routes_gen as routes
from libdsec._async.layers import AsyncEnvironments, AsyncLayers
from libdsec._async.platform import AsyncJobs, AsyncKeys
from libdsec._async.sandbox import TIMEOUT_S, AsyncSandbox, create_sandbox, create_sandboxes
from libdsec._async.transport import AsyncTransport
from libdsec._core import async_io
from libdsec._core.config import find_server
from libdsec._core.event import Event, EventType, event_of
from libdsec._core.lines import ServerEvents
from libdsec._core.request import Value, build_request
from libdsec._core.result import SandboxFailure
from libdsec._core.retry import Deadline
from libdsec._core.spec import BatchOptions, CreateOptions, SandboxState
from libdsec.errors import DsecError, UnavailableError


class AsyncClient:
    """A connection to a server. Leaving it as a context closes it; sandboxes run on.

    Without arguments the server is that of DSEC_URL and DSEC_API_KEY, else of the first of these files:
    $DSEC_CLIENT, ~/.config/dsec/client.json, $DSEC_STATE/client.json, /var/lib/dsec/client.json (`dsec up`
    writes it). `timeout`: seconds for each call with all its attempts, unless the call says otherwise.
    A key that came from a file and is refused is read from it again. `ca_file` (else DSEC_CA_FILE):
    certificates in PEM by which an https server is known, beside the usual ones.

    Every call is repeated a few times after a lost connection or where the server is overloaded. That is
    safe: what must not be done twice carries a key, by which the server knows a repetition.

    `layers`: of the store, and their names. `environments`: lists of layers under a name. `keys`: API keys.
    `jobs`: sandboxes that carry the same job label.
    """

    layers: AsyncLayers
    environments: AsyncEnvironments
    keys: AsyncKeys
    jobs: AsyncJobs

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float | None = TIMEOUT_S,
        ca_file: str | None = None,
    ) -> None:
        self._transport = AsyncTransport(find_server(url, api_key, ca_file=ca_file), timeout)
        self.layers = AsyncLayers(self._transport)
        self.environments = AsyncEnvironments(self._transport)
        self.keys = AsyncKeys(self._transport)
        self.jobs = AsyncJobs(self._transport)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._transport.server.shown}>"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes every connection."""
        await self._transport.close()

    async def create(
        self, environment: str | None = None, **options: Unpack[CreateOptions]
    ) -> AsyncSandbox:
        """Makes a sandbox of an environment, or of `layers`, and waits until it is ready.

        The options are those of `CreateOptions`. Raises `NotFoundError` for an unknown environment or
        layer, `OverloadedError` where no node has room, `UnsupportedError` for what no node can do.
        """
        return AsyncSandbox(
            self._transport, await create_sandbox(self._transport, environment, options)
        )

    @overload
    def create_many(
        self,
        count: int,
        environment: str | None = None,
        *,
        raise_on_failure: Literal[True],
        **options: Unpack[BatchOptions],
    ) -> AsyncIterator[AsyncSandbox]: ...

    @overload
    def create_many(
        self,
        count: int,
        environment: str | None = None,
        *,
        raise_on_failure: Literal[False] = False,
        **options: Unpack[BatchOptions],
    ) -> AsyncIterator[AsyncSandbox | SandboxFailure]: ...

    async def create_many(
        self,
        count: int,
        environment: str | None = None,
        *,
        raise_on_failure: bool = False,
        **options: Unpack[BatchOptions],
    ) -> AsyncIterator[AsyncSandbox | SandboxFailure]:
        """Makes many sandboxes of one kind in one call, and gives each as it becomes ready.

        One that cannot be made is given as `SandboxFailure`, or with `raise_on_failure` raised. Leaving the
        loop early leaves sandboxes that are made already to their TTL; the same call with the same
        `idempotency_key` gives them again. `timeout`: seconds for all of them.
        """
        made = create_sandboxes(self._transport, count, environment, options)
        async with aclosing(made) as items:
            async for item in items:
                if raise_on_failure and isinstance(item, SandboxFailure):
                    raise item.error
                yield item

    async def get(self, sandbox_id: str) -> AsyncSandbox:
        """A sandbox by its id."""
        request = build_request(routes.GET_SANDBOX, {"sandboxId": sandbox_id})
        return AsyncSandbox(self._transport, await self._transport.call(models.Sandbox, request))

    def list(
        self,
        *,
        state: Sequence[SandboxState] | None = None,
        job: str | None = None,
        label: Mapping[str, str] | None = None,
        limit: int | None = None,
        page_size: int | None = None,
    ) -> AsyncIterator[AsyncSandbox]:
        """Sandboxes in the order of their creation: in one of the states, of the job, with all labels given.

        `limit`: the most that come. `page_size`: how many are asked for at a time.
        """
        labels = [f"{name}={value}" for name, value in (label or {}).items()]
        filters: dict[str, Value] = {"state": state, "job": job, "label": labels}
        return self._transport.items(
            models.SandboxPage,
            lambda page: build_request(routes.LIST_SANDBOXES, query={**filters, **page}),
            lambda page: [AsyncSandbox(self._transport, info) for info in page.sandboxes],
            limit,
            page_size,
        )

    async def events(
        self,
        *,
        cursor: str | None = None,
        sandbox: str | None = None,
        job: str | None = None,
        types: Sequence[EventType] | None = None,
    ) -> AsyncIterator[Event]:
        """What happens from a cursor or from now on, without end.

        A lost connection is made anew at the last event. `LostEvent`: those before it are no longer kept,
        so read the state of what matters.
        """
        backoff = self._transport.patience()
        while True:
            try:
                query: dict[str, Value] = {"sandbox": sandbox, "job": job, "type": types}
                request = build_request(routes.STREAM_EVENTS, query={**query, "cursor": cursor})
                async with self._transport.open(request, Deadline(None)) as response:
                    backoff.opened()
                    events = ServerEvents()
                    async for data in response.aiter_raw():
                        backoff.reset()
                        for told in events.feed(data):
                            cursor = told.id or cursor
                            event = event_of(told.data)
                            if event is not None:
                                yield event
                raise UnavailableError("the stream of events ended")
            except DsecError as error:
                await async_io.sleep(backoff.after(error))

    def audit(
        self,
        *,
        sandbox: str | None = None,
        job: str | None = None,
        limit: int | None = None,
        page_size: int | None = None,
    ) -> AsyncIterator[models.AuditRecord]:
        """What sandboxes tried that they may not: a record for each that tried something.

        They come in the order of their creation. As it happens, it is among the events `denied` and
        `tamper`. `limit`: the most that come. `page_size`: how many are asked for at a time.
        """
        return self._transport.items(
            models.AuditPage,
            lambda page: build_request(
                routes.GET_AUDIT, query={"sandbox": sandbox, "job": job, **page}
            ),
            lambda page: page.records,
            limit,
            page_size,
        )

    async def health(self) -> models.Health:
        """Whether the server can serve."""
        return await self._transport.call(models.Health, build_request(routes.GET_HEALTH))

    async def version(self) -> models.Version:
        """The versions of the server and of what it speaks."""
        return await self._transport.call(models.Version, build_request(routes.GET_VERSION))

    async def doctor(self) -> models.DoctorReport:
        """What the server's machine can do and enforce."""
        return await self._transport.call(
            models.DoctorReport, build_request(routes.GET_DOCTOR_REPORT)
        )

    async def metrics(self) -> str:
        """Metrics in the Prometheus text format."""
        return await self._transport.text(build_request(routes.GET_METRICS))
