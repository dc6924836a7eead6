# Generated from python/libdsec/_async/client.py by `npm run generate`. Do not edit.

"""The entry to a server of DSec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from types import TracebackType
from typing import Literal, overload

from typing_extensions import Unpack

from libdsec import models_gen as models
from libdsec import routes_gen as routes
from libdsec._sync_gen.layers import Environments, Layers
from libdsec._sync_gen.platform import Jobs, Keys
from libdsec._sync_gen.sandbox import TIMEOUT_S, Sandbox, create_sandbox, create_sandboxes
from libdsec._sync_gen.transport import Transport
from libdsec._core import sync_io
from libdsec._core.config import find_server
from libdsec._core.event import Event, EventType, event_of
from libdsec._core.lines import ServerEvents
from libdsec._core.request import Value, build_request
from libdsec._core.result import SandboxFailure
from libdsec._core.retry import Deadline
from libdsec._core.spec import BatchOptions, CreateOptions, SandboxState
from libdsec.errors import DsecError, UnavailableError


class Client:
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

    layers: Layers
    environments: Environments
    keys: Keys
    jobs: Jobs

    def __init__(
        self,
        url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float | None = TIMEOUT_S,
        ca_file: str | None = None,
    ) -> None:
        self._transport = Transport(find_server(url, api_key, ca_file=ca_file), timeout)
        self.layers = Layers(self._transport)
        self.environments = Environments(self._transport)
        self.keys = Keys(self._transport)
        self.jobs = Jobs(self._transport)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._transport.server.shown}>"

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes every connection."""
        self._transport.close()

    def create(
        self, environment: str | None = None, **options: Unpack[CreateOptions]
    ) -> Sandbox:
        """Makes a sandbox of an environment, or of `layers`, and waits until it is ready.

        The options are those of `CreateOptions`. Raises `NotFoundError` for an unknown environment or
        layer, `OverloadedError` where no node has room, `UnsupportedError` for what no node can do.
        """
        return Sandbox(
            self._transport, create_sandbox(self._transport, environment, options)
        )

    @overload
    def create_many(
        self,
        count: int,
        environment: str | None = None,
        *,
        raise_on_failure: Literal[True],
        **options: Unpack[BatchOptions],
    ) -> Iterator[Sandbox]: ...

    @overload
    def create_many(
        self,
        count: int,
        environment: str | None = None,
        *,
        raise_on_failure: Literal[False] = False,
        **options: Unpack[BatchOptions],
    ) -> Iterator[Sandbox | SandboxFailure]: ...

    def create_many(
        self,
        count: int,
        environment: str | None = None,
        *,
        raise_on_failure: bool = False,
        **options: Unpack[BatchOptions],
    ) -> Iterator[Sandbox | SandboxFailure]:
        """Makes many sandboxes of one kind in one call, and gives each as it becomes ready.

        One that cannot be made is given as `SandboxFailure`, or with `raise_on_failure` raised. Leaving the
        loop early leaves sandboxes that are made already to their TTL; the same call with the same
        `idempotency_key` gives them again. `timeout`: seconds for all of them.
        """
        made = create_sandboxes(self._transport, count, environment, options)
        with closing(made) as items:
            for item in items:
                if raise_on_failure and isinstance(item, SandboxFailure):
                    raise item.error
                yield item

    def get(self, sandbox_id: str) -> Sandbox:
        """A sandbox by its id."""
        request = build_request(routes.GET_SANDBOX, {"sandboxId": sandbox_id})
        return Sandbox(self._transport, self._transport.call(models.Sandbox, request))

    def list(
        self,
        *,
        state: Sequence[SandboxState] | None = None,
        job: str | None = None,
        label: Mapping[str, str] | None = None,
        limit: int | None = None,
        page_size: int | None = None,
    ) -> Iterator[Sandbox]:
        """Sandboxes in the order of their creation: in one of the states, of the job, with all labels given.

        `limit`: the most that come. `page_size`: how many are asked for at a time.
        """
        labels = [f"{name}={value}" for name, value in (label or {}).items()]
        filters: dict[str, Value] = {"state": state, "job": job, "label": labels}
        return self._transport.items(
            models.SandboxPage,
            lambda page: build_request(routes.LIST_SANDBOXES, query={**filters, **page}),
            lambda page: [Sandbox(self._transport, info) for info in page.sandboxes],
            limit,
            page_size,
        )

    def events(
        self,
        *,
        cursor: str | None = None,
        sandbox: str | None = None,
        job: str | None = None,
        types: Sequence[EventType] | None = None,
    ) -> Iterator[Event]:
        """What happens from a cursor or from now on, without end.

        A lost connection is made anew at the last event. `LostEvent`: those before it are no longer kept,
        so read the state of what matters.
        """
        backoff = self._transport.patience()
        while True:
            try:
                query: dict[str, Value] = {"sandbox": sandbox, "job": job, "type": types}
                request = build_request(routes.STREAM_EVENTS, query={**query, "cursor": cursor})
                with self._transport.open(request, Deadline(None)) as response:
                    backoff.opened()
                    events = ServerEvents()
                    for data in response.iter_raw():
                        backoff.reset()
                        for told in events.feed(data):
                            cursor = told.id or cursor
                            event = event_of(told.data)
                            if event is not None:
                                yield event
                raise UnavailableError("the stream of events ended")
            except DsecError as error:
                sync_io.sleep(backoff.after(error))

    def audit(
        self,
        *,
        sandbox: str | None = None,
        job: str | None = None,
        limit: int | None = None,
        page_size: int | None = None,
    ) -> Iterator[models.AuditRecord]:
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

    def health(self) -> models.Health:
        """Whether the server can serve."""
        return self._transport.call(models.Health, build_request(routes.GET_HEALTH))

    def version(self) -> models.Version:
        """The versions of the server and of what it speaks."""
        return self._transport.call(models.Version, build_request(routes.GET_VERSION))

    def doctor(self) -> models.DoctorReport:
        """What the server's machine can do and enforce."""
        return self._transport.call(
            models.DoctorReport, build_request(routes.GET_DOCTOR_REPORT)
        )

    def metrics(self) -> str:
        """Metrics in the Prometheus text format."""
        return self._transport.text(build_request(routes.GET_METRICS))
