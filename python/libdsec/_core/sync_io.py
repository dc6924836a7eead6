"""What the synchronous face waits for. `async_io.py` is the same for the other one."""

from __future__ import annotations

import os
import ssl
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Literal, TypeVar, cast

import httpx
from websockets.sync.client import ClientConnection, connect, unix_connect

from libdsec._core.config import Server

T = TypeVar("T")

Connection = ClientConnection
Items = Iterable[bytes]


def each(items: Items) -> Iterator[bytes]:
    """What is given, one after the other."""
    yield from items


def sleep(seconds: float) -> None:
    """Waits for so long."""
    time.sleep(seconds)


def blocking(function: Callable[..., T], *arguments: Any) -> T:
    """Calls what may wait for a disk."""
    return function(*arguments)


def open_file(path: str | os.PathLike[str], mode: Literal["rb", "xb"]) -> BinaryIO:
    """A file of this machine, for bytes."""
    return open(path, mode)


def unix_transport(server: Server, limits: httpx.Limits) -> httpx.HTTPTransport | None:
    """Connections to a server by its socket, where it has one."""
    if server.unix_path is None:
        return None
    return httpx.HTTPTransport(uds=server.unix_path, verify=False, limits=limits)


def tls_context(server: Server) -> ssl.SSLContext | bool:
    """One for all pools, because it takes long to make. `False` where there is no TLS."""
    if not server.base_url.startswith("https:"):
        return False
    context = httpx.create_ssl_context()
    if server.ca_file is not None:
        context.load_verify_locations(server.ca_file)
    return context


def open_socket(server: Server, url: str, options: dict[str, Any]) -> Connection:
    """A WebSocket that is open."""
    # Newer versions of the library want it as a context; its end is `close`.
    if server.unix_path is not None:
        manager: Any = unix_connect(server.unix_path, uri=url, **options)
    else:
        manager = connect(url, proxy=None if server.is_local else True, **options)
    return cast(Connection, manager.__enter__())
