"""The output of an attached command, whatever becomes of its connections (protocol/src/api/attach.ts)."""

from __future__ import annotations

import json
import struct
from typing import NamedTuple

from pydantic import ValidationError

from libdsec import models_gen as models
from libdsec._core.spec import OutputStream
from libdsec.errors import OutputLostError, ProtocolError, error_of_body

ACK_EVERY_BYTES = 256 * 1024
HEADER = struct.Struct("<BQ")
STREAMS: dict[int, OutputStream] = {1: "stdout", 2: "stderr"}


class OutputChunk(NamedTuple):
    """Bytes of one stream, by their absolute offset. A jump of the offset is output that is not kept."""

    stream: OutputStream
    data: bytes
    offset: int


class OutputAttachment:
    """Takes the messages of one connection after the other, and knows where the next one goes on."""

    def __init__(self, stdout: int = 0, stderr: int = 0, *, skip_lost: bool = False) -> None:
        self._offsets: dict[str, int] = {"stdout": stdout, "stderr": stderr}
        self._acked = dict(self._offsets)
        self._skip_lost = skip_lost
        self.end: models.Exec | None = None

    def query(self) -> dict[str, int]:
        """Of a new connection, which knows of no acknowledgement yet."""
        self._acked = dict(self._offsets)
        return {"stdoutOffset": self._offsets["stdout"], "stderrOffset": self._offsets["stderr"]}

    def receive(self, message: str | bytes) -> OutputChunk | None:
        """The output in a message, if there is some. Sets `end` with the last one; raises what it says."""
        if isinstance(message, str):
            self._control(message)
            return None
        if len(message) < HEADER.size:
            raise ProtocolError(f"attach: a message of {len(message)} bytes")
        channel, offset = HEADER.unpack_from(message)
        stream = STREAMS.get(channel)
        if stream is None or offset != self._offsets[stream]:
            raise ProtocolError(f"attach: bytes of channel {channel} at {offset} were not expected")
        data = message[HEADER.size :]
        self._offsets[stream] = offset + len(data)
        return OutputChunk(stream, data, offset)

    def acknowledgement(self, stream: OutputStream) -> str | None:
        """To be sent once the caller has taken what came; not for every piece."""
        offset = self._offsets[stream]
        if offset - self._acked[stream] < ACK_EVERY_BYTES:
            return None
        self._acked[stream] = offset
        return json.dumps({"type": "ack", "channel": stream, "offset": offset})

    def _control(self, text: str) -> None:
        try:
            message = models.AttachServerMessage.model_validate_json(text).root
        except ValidationError:
            # What a newer server may say.
            return
        if isinstance(message, models.AttachGap):
            self._skip(message.channel, message.offset, message.next_offset)
        elif isinstance(message, models.AttachExit):
            self.end = message.exec
        elif isinstance(message, models.AttachError):
            raise error_of_body(message.error.model_dump(by_alias=True))

    def _skip(self, stream: str, offset: int, next_offset: int) -> None:
        if not self._skip_lost:
            raise OutputLostError(
                f"{stream} from {offset} to {next_offset} is not kept",
                details={"offset": next_offset},
            )
        self._offsets[stream] = next_offset
