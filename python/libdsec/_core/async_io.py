"""What the asynchronous face waits for. `sync_io.py` is the same for the other one."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from typing import Any, BinaryIO, Literal, TypeVar

import httpx
from websockets.asyncio.client import ClientConnection, connect, unix_connect

from libdsec._core.config import Server

T = TypeVar("T")

Connection = ClientConnection
Items = Iterable[bytes] | AsyncIterable[bytes]


async def each(items: Items) -> AsyncIterator[bytes]:
    """What is given, one after the other."""
    if isinstance(items, AsyncIterable):
        async for item in items:
            yield item
        return
    for item in items:
        yield item


async def sleep(seconds: float) -> None:
    """Lets others run for so long."""
    await asyncio.sleep(seconds)


async def blocking(function: Callable[..., T], *arguments: Any) -> T:
    """Calls what may wait for a disk."""
    return await asyncio.to_thread(function, *arguments)


async def open_file(path: str | os.PathLike[str], mode: Literal["rb", "xb"]) -> BinaryIO:
    """A file of this machine, for bytes."""
    file: BinaryIO = await asyncio.to_thread(open, path, mode)
    return file


def unix_transport(server: Server, limits: httpx.Limits) -> httpx.AsyncHTTPTransport | None:
    """Connections to a server by its socket, where it has one."""
    if server.unix_path is None:
        return None
    return httpx.AsyncHTTPTransport(uds=server.unix_path, verify=False, limits=limits)


def tls_context(server: Server) -> ssl.SSLContext | bool:
    """One for all pools, because it takes long to make. `False` where there is no TLS."""
    if not server.base_url.startswith("https:"):
        return False
    context = httpx.create_ssl_context()
    if server.ca_file is not None:
        context.load_verify_locations(server.ca_file)
    return context


async def open_socket(server: Server, url: str, options: dict[str, Any]) -> Connection:
    """A WebSocket that is open."""
    if server.unix_path is not None:
        manager = unix_connect(server.unix_path, uri=url, **options)
    else:
        manager = connect(url, proxy=None if server.is_local else True, **options)
    return await manager.__aenter__()
