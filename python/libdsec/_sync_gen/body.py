# Generated from python/libdsec/_async/body.py by `npm run generate`. Do not edit.

"""What is to be sent as a file, in any of the forms that callers have."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Callable
from typing import BinaryIO, cast

from libdsec._core import sync_io
from libdsec._core.result import pieces

PIECE_BYTES = 256 * 1024

Data = bytes | str | BinaryIO | sync_io.Items | Callable[[], sync_io.Items]
OnProgress = Callable[[int], None]


class Body:
    """Bytes of any number. `length`: how many, where that is known."""

    def __init__(self, data: Data, on_progress: OnProgress | None = None) -> None:
        self._on_progress = on_progress
        self._file: BinaryIO | None = None
        self._items: sync_io.Items = ()
        self._make: Callable[[], sync_io.Items] | None = None
        self._start = 0
        self._is_used = False
        self.length: int | None = None
        if isinstance(data, str):
            data = data.encode()
        if isinstance(data, (bytes, bytearray, memoryview)):
            self._file = io.BytesIO(data)
        elif hasattr(data, "read"):
            self._file = cast(BinaryIO, data)
        elif callable(data):
            self._make = data
        else:
            self._items = data
        if self._file is not None and self._file.seekable():
            self._start = self._file.tell()
            self.length = self._file.seek(0, os.SEEK_END) - self._start

    @property
    def can_be_sent(self) -> bool:
        """Whether `open` gives all of it: always the first time."""
        return self.length is not None or self._make is not None or not self._is_used

    @property
    def headers(self) -> dict[str, str]:
        """What a request says of it."""
        length = {} if self.length is None else {"content-length": str(self.length)}
        return {"content-type": "application/octet-stream", **length}

    def open(self) -> Iterator[bytes]:
        """The bytes, from the first one on."""
        if self._file is not None:
            for piece in self._read(self._file):
                yield piece
            return
        self._is_used = True
        for data in sync_io.each(self._items if self._make is None else self._make()):
            for piece in pieces(data, PIECE_BYTES):
                yield piece

    def _read(self, file: BinaryIO) -> Iterator[bytes]:
        if self.length is not None:
            file.seek(self._start)
        left = self.length
        sent = 0
        while left is None or left > 0:
            self._is_used = True
            size = PIECE_BYTES if left is None else min(PIECE_BYTES, left)
            piece = sync_io.blocking(file.read, size)
            if not piece:
                return
            left = None if left is None else left - len(piece)
            yield piece
            sent += len(piece)
            if self._on_progress is not None:
                self._on_progress(sent)
