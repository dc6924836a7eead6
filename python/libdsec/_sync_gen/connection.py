# Generated from python/libdsec/_async/connection.py by `npm run generate`. Do not edit.

"""A connection to a port inside a sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from types import TracebackType

from libdsec._sync_gen.transport import Socket
from libdsec._core.result import pieces
from libdsec._core.spec import as_bytes
from libdsec.errors import ProtocolError

PIECE_BYTES = 64 * 1024


class Connection:
    """Bytes in both directions, each as fast as the other side takes them."""

    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self._has_ended = False

    def __enter__(self) -> Connection:
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

    def read(self) -> bytes | None:
        """The next bytes, as many as come at once; `None` at the end."""
        if self._has_ended:
            return None
        message = self._socket.receive()
        if isinstance(message, str):
            raise ProtocolError("the bytes of a port came as text")
        self._has_ended = not message
        return message or None

    def write(self, data: bytes | str) -> None:
        """Sends all of it; text as UTF-8."""
        for piece in pieces(as_bytes(data), PIECE_BYTES):
            self._socket.send(piece)

    def end(self) -> None:
        """Says that no more bytes come from here; the other direction goes on."""
        self._socket.send(b"")

    def close(self) -> None:
        """Closes both directions. Does nothing where that was done."""
        self._socket.close()
