"""Requests to one server: connections, attempts, and errors in the terms of the table."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel
from websockets.exceptions import ConnectionClosedOK, WebSocketException

from libdsec._core import async_io
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


class AsyncTransport:
    """Connections to one server. `timeout`: seconds that a call may take with all its attempts."""

    def __init__(self, server: Server, timeout: float | None) -> None:
        self.server = server
        self.timeout = timeout
        self._tls = async_io.tls_context(server)
        self._pools = Shards(self._make_pool)
        self._is_open = True

    def _make_pool(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self.server.base_url,
            headers={"user-agent": USER_AGENT, "accept-encoding": "identity"},
            transport=async_io.unix_transport(self.server, LIMITS),
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

    async def close(self) -> None:
        """Closes every connection."""
        self._is_open = False
        for pool in self._pools.pools:
            await pool.aclose()

    def deadline(self, timeout: float | None = None) -> Deadline:
        """Of a call: as the caller says, else as the client does."""
        return Deadline(self.timeout if timeout is None else timeout)

    async def call(
        self, model: type[M], request: Request, timeout: float | None = None, *, wait: float = 0
    ) -> M:
        """Sends a request until it is answered, and reads the answer.

        `wait`: seconds that the server was asked to wait for something, in each attempt.
        """
        return parse_answer(model, await self._attempts(request, timeout, wait))

    async def text(self, request: Request) -> str:
        """The same where the answer is text."""
        return (await self._attempts(request, None, 0)).decode()

    async def run(self, request: Request, timeout: float | None = None) -> None:
        """The same where the answer is empty."""
        await self._attempts(request, timeout, 0)

    async def _attempts(self, request: Request, timeout: float | None, wait: float) -> bytes:
        deadline = Deadline(None) if wait and timeout is None else self.deadline(timeout)
        backoff = self.patience(deadline) if wait else Backoff(deadline)
        while True:
            try:
                async with self.open(request, deadline, stall=wait + STALL_S) as response:
                    return await response.aread()
            except DsecError as error:
                await async_io.sleep(backoff.after(error))

    def patience(self, deadline: Deadline | None = None) -> Backoff:
        """For what goes on where it was: it may fail for as long as a call may take."""
        seconds = PATIENCE_S if self.timeout is None else self.timeout
        return Backoff(deadline or Deadline(None), patience=seconds)

    @asynccontextmanager
    async def open(
        self,
        request: Request,
        deadline: Deadline,
        *,
        content: AsyncIterator[bytes] | bytes | None = None,
        headers: dict[str, str] | None = None,
        stall: float = STALL_S,
    ) -> AsyncGenerator[httpx.Response, None]:
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
                response = await pool.send(sent, stream=True)
                try:
                    if response.is_success:
                        yield response
                        return
                    request_id = response.headers.get("x-request-id")
                    content_told = await response.aread()
                    error = error_of_response(response.status_code, content_told, request_id)
                    is_whole = content is None or isinstance(content, bytes)
                    if not (is_whole and self._has_other_key(error, used)):
                        raise with_names(error, request.asked)
                finally:
                    await response.aclose()
        except (httpx.HTTPError, httpx.StreamError) as fault:
            raise error_of_http(fault, self.server, deadline) from fault
        finally:
            self._pools.give_back(place)

    async def resumed(
        self,
        deadline: Deadline,
        request_at: Callable[[int], Request],
        offset: int,
    ) -> AsyncGenerator[bytes, None]:
        """The bytes of an answer from an offset on; after a lost connection it is asked for the rest."""
        backoff = self.patience(deadline)
        while True:
            try:
                async with self.open(request_at(offset), deadline) as response:
                    backoff.opened()
                    async for data in response.aiter_raw():
                        offset += len(data)
                        backoff.reset()
                        yield data
                return
            except DsecError as error:
                await async_io.sleep(backoff.after(error))

    async def items(
        self,
        model: type[M],
        request_of: Callable[[dict[str, Value]], Request],
        items_in: Callable[[M], Sequence[T]],
        limit: int | None,
        page_size: int | None,
    ) -> AsyncGenerator[T, None]:
        """What a listing holds, page by page as it is taken.

        `request_of`: the request for a page, from the part of its query that says which. `limit`: of all.
        """
        left = sys.maxsize if limit is None else limit
        cursor: str | None = None
        while left > 0:
            size = min(left, PAGE_SIZE if page_size is None else page_size)
            page = await self.call(model, request_of({"limit": size, "cursor": cursor}))
            for item in items_in(page)[:left]:
                yield item
                left -= 1
            cursor = getattr(page, "cursor", None)
            if cursor is None:
                return

    async def lines(self, response: httpx.Response, model: type[M]) -> AsyncGenerator[M, None]:
        """The JSON documents of an answer, one a line."""
        lines = Lines()
        async for data in response.aiter_raw():
            for line in lines.feed(data):
                yield parse_answer(model, line)

    async def socket(self, request: Request, *, is_bounded: bool = True) -> AsyncSocket:
        """One attempt to open a WebSocket. `is_bounded`: by the protocol that is spoken over it."""
        used = self.server.api_key
        try:
            return await self._socket(request, is_bounded)
        except DsecError as error:
            if not self._has_other_key(error, used):
                raise
        return await self._socket(request, is_bounded)

    async def _socket(self, request: Request, is_bounded: bool) -> AsyncSocket:
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
            return AsyncSocket(await async_io.open_socket(self.server, url, options), self.server)
        except (OSError, WebSocketException) as fault:
            raise error_of_socket(fault, self.server) from fault


class AsyncSocket:
    """A WebSocket whose failures are errors of the table."""

    def __init__(self, connection: async_io.Connection, server: Server) -> None:
        self._connection = connection
        self._server = server

    async def receive(self) -> str | bytes | None:
        """The next message; `None` after a normal end."""
        try:
            return await self._connection.recv()
        except ConnectionClosedOK:
            return None
        except (OSError, WebSocketException) as fault:
            raise error_of_socket(fault, self._server) from fault

    async def send(self, message: str | bytes) -> None:
        """Waits while the connection takes no more."""
        try:
            await self._connection.send(message)
        except (OSError, WebSocketException) as fault:
            raise error_of_socket(fault, self._server) from fault

    async def close(self) -> None:
        """Says goodbye; does nothing where that was done."""
        await self._connection.close()
