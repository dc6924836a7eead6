"""Paths inside a sandbox: any bytes but NUL."""

from __future__ import annotations

import base64
from pathlib import PurePath

from pydantic import BaseModel

from libdsec import models_gen as models

PathLike = str | bytes | PurePath


def path_fields(path: PathLike, name: str = "path") -> dict[str, str]:
    """The one of two fields that can carry it: text, or base64 of bytes that are not UTF-8.

    Text may hold what `os.fsdecode` makes of such bytes.
    """
    data = path if isinstance(path, bytes) else str(path).encode("utf-8", "surrogateescape")
    try:
        return {name: data.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def path_query(path: PathLike) -> dict[str, str]:
    """The same for a query, with names as on the wire."""
    return {name.replace("_b", "B"): text for name, text in path_fields(path).items()}


class FileInfo(models.FileEntry):
    """What a path names. `size_bytes` is of its content, `mode` its permission bits."""

    @property
    def name_bytes(self) -> bytes:
        """The exact name, of which `name` may be only a form to show."""
        return (
            self.name.encode() if self.name_base64 is None else base64.b64decode(self.name_base64)
        )

    @property
    def is_directory(self) -> bool:
        return self.kind == "directory"

    def is_same_file(self, other: FileInfo) -> bool:
        """Whether nothing shows that its content was changed."""
        return self._content_marks() == other._content_marks()

    def _content_marks(self) -> tuple[int, int, int]:
        return self.size_bytes, self.mtime_seconds, self.mtime_nanoseconds

    @property
    def mtime(self) -> float:
        """Seconds since the Unix epoch."""
        return self.mtime_seconds + self.mtime_nanoseconds / 1e9


class FileInfoPage(BaseModel):
    """A page of a directory."""

    entries: list[FileInfo]
    cursor: str | None = None
