# Generated from python/libdsec/_async/port.py by `npm run generate`. Do not edit.

"""A connection to a port inside a sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType

from libdsec._sync_gen.transport import Socket
from libdsec._core.result import pieces
from libdsec.errors import ProtocolError

PIECE_BYTES = 64 * 1024


class PortStream:
    """Bytes in both directions, each as fast as the other side takes them."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self._has_ended = False

    def __enter__(self) -> PortStream:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[bytes]:
        while data := self.read():
            yield data

    def read(self) -> bytes:
        """The next bytes, as many as come at once; none at the end."""
        if self._has_ended:
            return b""
        message = self._socket.receive()
        if isinstance(message, str):
            raise ProtocolError("the bytes of a port came as text")
        self._has_ended = not message
        return message or b""

    def write(self, data: bytes) -> None:
        """Sends all of it."""
        for piece in pieces(data, PIECE_BYTES):
            self._socket.send(piece)

    def end(self) -> None:
        """Says that no more bytes come from here; the other direction goes on."""
        self._socket.send(b"")

    def close(self) -> None:
        """Closes both directions. Does nothing where that was done."""
        self._socket.close()
