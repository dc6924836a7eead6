"""Files that get their name when they are whole, so that one who is killed leaves nothing behind."""

import os
from typing import BinaryIO

# Linux alone has it.
O_TMPFILE: int = getattr(os, "O_TMPFILE", 0)


def open_hidden(path: str | bytes) -> BinaryIO:
    """A new file for writing in the directory of `path`: without a name where the file system can do that."""
    if O_TMPFILE:
        here = os.curdir if isinstance(path, str) else os.fsencode(os.curdir)
        try:
            return open(os.open(os.path.dirname(path) or here, O_TMPFILE | os.O_WRONLY, 0o666), "wb")
        except OSError:
            pass
    return open(path, "xb")


def show_hidden(file: BinaryIO, path: str | bytes) -> None:
    """Gives it that name."""
    file.flush()
    fd = file.fileno()
    if os.fstat(fd).st_nlink == 0:
        # A descriptor for the source, which an absolute path has no use for, makes Python call linkat(2).
        os.link(f"/proc/self/fd/{fd}", path, src_dir_fd=fd)
