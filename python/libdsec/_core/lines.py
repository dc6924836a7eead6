"""Bodies that are told line by line."""

from __future__ import annotations

from typing import NamedTuple

from libdsec.errors import ProtocolError

LINE_BYTES_MAX = 1024 * 1024


class Lines:
    """Cuts a body into lines, without their ends."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[str]:
        """The lines that are complete by now."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_BYTES_MAX:
            raise ProtocolError(f"a line has more than {LINE_BYTES_MAX} bytes")
        return [line.decode("utf-8", "replace") for line in lines]


class ServerEvent(NamedTuple):
    """One server-sent event."""

    id: str
    data: str


class ServerEvents:
    """Cuts a body into server-sent events: `id` and `data` of each; everything else is passed over."""

    def __init__(self) -> None:
        self._lines = Lines()
        self._id = ""
        self._data: list[str] = []

    def feed(self, data: bytes) -> list[ServerEvent]:
        """The events that are complete by now."""
        events: list[ServerEvent] = []
        for line in self._lines.feed(data):
            if line == "":
                if self._data:
                    events.append(ServerEvent(self._id, "\n".join(self._data)))
                self._data = []
                continue
            name, _, value = line.removesuffix("\r").partition(":")
            value = value.removeprefix(" ")
            if name == "id":
                self._id = value
            elif name == "data":
                self._data.append(value)
        return events
