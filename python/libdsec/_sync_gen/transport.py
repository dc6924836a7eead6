# Generated from python/libdsec/_async/transport.py by `npm run generate`. Do not edit.

"""Requests to one server: connections, attempts, and errors in the terms of the table."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Callable, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel
from websockets.exceptions import ConnectionClosedOK, WebSocketException

from libdsec._core import sync_io
from libdsec._core.answer import parse_answer
from libdsec._core.asked import with_names
from libdsec._core.config import Server, key_from_file
from libdsec._core.faults import error_of_http, error_of_response, error_of_socket
from libdsec._core.lines import Lines
from libdsec._core.request import Request, Value
from libdsec._core.retry import Backoff, Deadline
from libdsec._core.shards import POOL_REQUESTS_MAX, Shards
from libdsec._core.version import USER_AGENT
from libdsec.errors import CancelledError, DsecError, UnauthenticatedError

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

CONNECT_S = 10.0
# A server that is there says something at least every 15 seconds where it has to.
STALL_S = 60.0
PATIENCE_S = 60.0
LIMITS = httpx.Limits(max_connections=POOL_REQUESTS_MAX, keepalive_expiry=30)
PAGE_SIZE = 500
# More than a window of both outputs: a connection that is read slowly still answers pings.
SOCKET_MESSAGES_MAX = 64


class Transport:
    """Connections to one server. `timeout`: seconds that a call may take with all its attempts."""

    def __init__(self, server: Server, timeout: float | None) -> None:
        self.server = server
        self.timeout = timeout
        self._tls = sync_io.tls_context(server)
        self._pools = Shards(self._make_pool)
        self._is_open = True

    def _make_pool(self) -> httpx.Client:
        return httpx.Client(
            base_url=self.server.base_url,
            headers={"user-agent": USER_AGENT, "accept-encoding": "identity"},
            transport=sync_io.unix_transport(self.server, LIMITS),
            verify=self._tls,
            limits=LIMITS,
            trust_env=not self.server.is_local,
            follow_redirects=False,
        )

    def _authorization(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.server.api_key}"}

    def _has_other_key(self, error: DsecError, used: str) -> bool:
        """Whether there is another key to try than the one that was refused: that of the client file."""
        if not isinstance(error, UnauthenticatedError):
            return False
        if self.server.api_key == used:
            found = key_from_file(self.server)
            if found is not None:
                self.server = replace(self.server, api_key=found)
        return self.server.api_key != used

    def close(self) -> None:
        """Closes every connection."""
        self._is_open = False
        for pool in self._pools.pools:
            pool.close()

    def deadline(self, timeout: float | None = None) -> Deadline:
        """Of a call: as the caller says, else as the client does."""
        return Deadline(self.timeout if timeout is None else timeout)

    def call(
        self, model: type[M], request: Request, timeout: float | None = None, *, wait: float = 0
    ) -> M:
        """Sends a request until it is answered, and reads the answer.

        `wait`: seconds that the server was asked to wait for something, in each attempt.
        """
        return parse_answer(model, self._attempts(request, timeout, wait))

    def text(self, request: Request) -> str:
        """The same where the answer is text."""
        return (self._attempts(request, None, 0)).decode()

    def run(self, request: Request, timeout: float | None = None) -> None:
        """The same where the answer is empty."""
        self._attempts(request, timeout, 0)

    def _attempts(self, request: Request, timeout: float | None, wait: float) -> bytes:
        deadline = Deadline(None) if wait and timeout is None else self.deadline(timeout)
        backoff = self.patience(deadline) if wait else Backoff(deadline)
        while True:
            try:
                with self.open(request, deadline, stall=wait + STALL_S) as response:
                    return response.read()
            except DsecError as error:
                sync_io.sleep(backoff.after(error))

    def patience(self, deadline: Deadline | None = None) -> Backoff:
        """For what goes on where it was: it may fail for as long as a call may take."""
        seconds = PATIENCE_S if self.timeout is None else self.timeout
        return Backoff(deadline or Deadline(None), patience=seconds)

    @contextmanager
    def open(
        self,
        request: Request,
        deadline: Deadline,
        *,
        content: Iterator[bytes] | bytes | None = None,
        headers: dict[str, str] | None = None,
        stall: float = STALL_S,
    ) -> Generator[httpx.Response, None, None]:
        """One attempt: the answer as it comes, once it is known to be a success."""
        if not self._is_open:
            raise CancelledError("the client was closed")
        place = self._pools.take()
        try:
            pool = self._pools.pools[place]
            while True:
                used = self.server.api_key
                sent = pool.build_request(
                    request.route.method,
                    request.target,
                    headers={**self._authorization(), **request.headers, **(headers or {})},
                    content=request.content if content is None else content,
                    timeout=httpx.Timeout(
                        deadline.at_most(stall), connect=deadline.at_most(CONNECT_S)
                    ),
                )
                response = pool.send(sent, stream=True)
                try:
                    if response.is_success:
                        yield response
                        return
                    request_id = response.headers.get("x-request-id")
                    content_told = response.read()
                    error = error_of_response(response.status_code, content_told, request_id)
                    is_whole = content is None or isinstance(content, bytes)
                    if not (is_whole and self._has_other_key(error, used)):
                        raise with_names(error, request.asked)
                finally:
                    response.close()
        except (httpx.HTTPError, httpx.StreamError) as fault:
            raise error_of_http(fault, self.server, deadline) from fault
        finally:
            self._pools.give_back(place)

    def resumed(
        self,
        deadline: Deadline,
        request_at: Callable[[int], Request],
        offset: int,
    ) -> Generator[bytes, None, None]:
        """The bytes of an answer from an offset on; after a lost connection it is asked for the rest."""
        backoff = self.patience(deadline)
        while True:
            try:
                with self.open(request_at(offset), deadline) as response:
                    backoff.opened()
                    for data in response.iter_raw():
                        offset += len(data)
                        backoff.reset()
                        yield data
                return
            except DsecError as error:
                sync_io.sleep(backoff.after(error))

    def items(
        self,
        model: type[M],
        request_of: Callable[[dict[str, Value]], Request],
        items_in: Callable[[M], Sequence[T]],
        limit: int | None,
        page_size: int | None,
    ) -> Generator[T, None, None]:
        """What a listing holds, page by page as it is taken.

        `request_of`: the request for a page, from the part of its query that says which. `limit`: of all.
        """
        left = sys.maxsize if limit is None else limit
        cursor: str | None = None
        while left > 0:
            size = min(left, PAGE_SIZE if page_size is None else page_size)
            page = self.call(model, request_of({"limit": size, "cursor": cursor}))
            for item in items_in(page)[:left]:
                yield item
                left -= 1
            cursor = getattr(page, "cursor", None)
            if cursor is None:
                return

    def lines(self, response: httpx.Response, model: type[M]) -> Generator[M, None, None]:
        """The JSON documents of an answer, one a line."""
        lines = Lines()
        for data in response.iter_raw():
            for line in lines.feed(data):
                yield parse_answer(model, line)

    def socket(self, request: Request, *, is_bounded: bool = True) -> Socket:
        """One attempt to open a WebSocket. `is_bounded`: by the protocol that is spoken over it."""
        used = self.server.api_key
        try:
            return self._socket(request, is_bounded)
        except DsecError as error:
            if not self._has_other_key(error, used):
                raise
        return self._socket(request, is_bounded)

    def _socket(self, request: Request, is_bounded: bool) -> Socket:
        url = f"ws{self.server.base_url.removeprefix('http')}{request.target}"
        own = {**self._authorization(), "user-agent": USER_AGENT}
        options: dict[str, Any] = {
            "additional_headers": {**own, **request.headers},
            "user_agent_header": None,
            "compression": None,
            "open_timeout": CONNECT_S,
            "close_timeout": 2,
            "ping_interval": 20,
            "ping_timeout": 20 if is_bounded else None,
            "max_queue": SOCKET_MESSAGES_MAX if is_bounded else 8,
        }
        if self._tls is not False:
            options["ssl"] = self._tls
        try:
            return Socket(sync_io.open_socket(self.server, url, options), self.server)
        except (OSError, WebSocketException) as fault:
            raise error_of_socket(fault, self.server) from fault


class Socket:
    """A WebSocket whose failures are errors of the table."""

    def __init__(self, connection: sync_io.Connection, server: Server) -> None:
        self._connection = connection
        self._server = server

    def receive(self) -> str | bytes | None:
        """The next message; `None` after a normal end."""
        try:
            return self._connection.recv()
        except ConnectionClosedOK:
            return None
        except (OSError, WebSocketException) as fault:
            raise error_of_socket(fault, self._server) from fault

    def send(self, message: str | bytes) -> None:
        """Waits while the connection takes no more."""
        try:
            self._connection.send(message)
        except (OSError, WebSocketException) as fault:
            raise error_of_socket(fault, self._server) from fault

    def close(self) -> None:
        """Says goodbye; does nothing where that was done."""
        self._connection.close()
