"""A connection to a port inside a sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType

from libdsec._async.transport import AsyncSocket
from libdsec._core.result import pieces
from libdsec._core.spec import as_bytes
from libdsec.errors import ProtocolError

PIECE_BYTES = 64 * 1024


class AsyncConnection:
    """Bytes in both directions, each as fast as the other side takes them."""

    def __init__(self, socket: AsyncSocket) -> None:
        self._socket = socket
        self._has_ended = False

    async def __aenter__(self) -> AsyncConnection:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while data := await self.read():
            yield data

    async def read(self) -> bytes | None:
        """The next bytes, as many as come at once; `None` at the end."""
        if self._has_ended:
            return None
        message = await self._socket.receive()
        if isinstance(message, str):
            raise ProtocolError("the bytes of a port came as text")
        self._has_ended = not message
        return message or None

    async def write(self, data: bytes | str) -> None:
        """Sends all of it; text as UTF-8."""
        for piece in pieces(as_bytes(data), PIECE_BYTES):
            await self._socket.send(piece)

    async def end(self) -> None:
        """Says that no more bytes come from here; the other direction goes on."""
        await self._socket.send(b"")

    async def close(self) -> None:
        """Closes both directions. Does nothing where that was done."""
        await self._socket.close()
