"""The files of a sandbox."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import AsyncIterator, Mapping

from pydantic import BaseModel

from libdsec import models_gen as models
from libdsec import routes_gen as routes
from libdsec._async.body import AsyncBody, Data, OnProgress
from libdsec._async.transport import AsyncTransport
from libdsec._core import async_io
from libdsec._core.answer import parse_answer
from libdsec._core.hidden import open_hidden, show_hidden
from libdsec._core.paths import FileInfo, FileInfoPage, PathLike, path_fields, path_query
from libdsec._core.request import Request, Value, build_request
from libdsec._core.retry import Deadline
from libdsec._core.route import Route
from libdsec._core.spec import as_model
from libdsec.errors import ConflictError, DsecError, NotFoundError

# So much is read as a whole before the first byte is given: it cannot be of two files.
WHOLE_BYTES = 2**20


class AsyncFiles:
    """Files of a sandbox, of any size in constant memory.

    Paths are text, bytes or `PurePath`; relative ones start at the working directory of the sandbox.
    `user`: whose rights are used, those of the sandbox's own user where absent. A symbolic link never leads
    out of the sandbox. All raise `NotFoundError` for what is not there and `PermissionDeniedError` for what
    that user may not do.
    """

    def __init__(self, transport: AsyncTransport, sandbox: str) -> None:
        self._transport = transport
        self._params = {"sandboxId": sandbox}

    async def read(
        self,
        path: PathLike,
        *,
        offset: int = 0,
        length: int | None = None,
        user: str | None = None,
    ) -> bytes:
        """All of a file, or a stretch of it."""
        stream = self.stream(path, offset=offset, length=length, user=user)
        return b"".join([data async for data in stream])

    async def read_text(self, path: PathLike, *, user: str | None = None) -> str:
        """All of a file, as UTF-8. `UnicodeDecodeError` where it is none."""
        return (await self.read(path, user=user)).decode()

    async def stream(
        self,
        path: PathLike,
        *,
        offset: int = 0,
        length: int | None = None,
        user: str | None = None,
    ) -> AsyncIterator[bytes]:
        """The bytes of a file, or of a stretch of it, as they come.

        A lost connection is made anew where it was lost; `ConflictError` where the file is another by then.
        """
        query: dict[str, Value] = {**path_query(path), "user": user}
        end = None if length is None else offset + length
        place = offset
        known: FileInfo | None = None
        backoff = self._transport.patience()
        while True:
            part = {"offset": place, "lengthBytes": None if end is None else end - place}
            request = self._request(routes.READ_FILE, {**query, **part})
            try:
                async with self._transport.open(request, Deadline(None)) as response:
                    size = int(response.headers.get("dsec-size-bytes", sys.maxsize))
                    whole = (size if end is None else min(size, end)) - offset
                    if known is None and whole <= WHOLE_BYTES:
                        yield await response.aread()
                        return
                    found = await self.stat(path, user=user)
                    if known is not None and not known.is_same_file(found):
                        raise ConflictError(f"{path!r} has changed while it was read")
                    known = found
                    async for data in response.aiter_raw():
                        place += len(data)
                        backoff.reset()
                        yield data
                return
            except DsecError as error:
                await async_io.sleep(backoff.after(error))

    async def write(
        self,
        path: PathLike,
        data: Data,
        *,
        mode: int | None = None,
        create_parents: bool = True,
        exclusive: bool = False,
        user: str | None = None,
    ) -> FileInfo:
        """Writes a file as a whole: until all has come, readers see the old one or none.

        `data`: bytes, text (as UTF-8), a binary file from where it stands, what gives bytes one after the
        other, or a function that gives the same such thing each time. `mode`: permission bits.
        `exclusive`: `AlreadyExistsError` instead of replacing. What cannot be read a second time, and what
        is exclusive and may have arrived, is not sent again after a lost connection: then
        `UnavailableError`.
        """
        query = self._write_query(path, mode, create_parents, exclusive, user)
        return await self._write(query, AsyncBody(data), exclusive)

    async def stat(
        self, path: PathLike, *, follow_symlinks: bool = True, user: str | None = None
    ) -> FileInfo:
        """What a path names."""
        query: dict[str, Value] = {**path_query(path), "user": user}
        query["followSymlinks"] = follow_symlinks
        return await self._transport.call(FileInfo, self._request(routes.STAT_FILE, query))

    async def exists(self, path: PathLike, *, user: str | None = None) -> bool:
        """Whether it names something."""
        try:
            await self.stat(path, user=user)
        except NotFoundError:
            return False
        return True

    def list(
        self,
        path: PathLike,
        *,
        user: str | None = None,
        limit: int | None = None,
        page_size: int | None = None,
    ) -> AsyncIterator[FileInfo]:
        """The entries of a directory, in its own order. `limit`: the most; `page_size`: at a time."""
        query: dict[str, Value] = {**path_query(path), "user": user}
        return self._transport.items(
            FileInfoPage,
            lambda page: self._request(routes.LIST_FILES, {**query, **page}),
            lambda page: page.entries,
            limit,
            page_size,
        )

    async def mkdir(
        self,
        path: PathLike,
        *,
        mode: int | None = None,
        create_parents: bool = True,
        user: str | None = None,
    ) -> FileInfo:
        """Makes a directory. With `create_parents` one that is there already is fine."""
        fields = {"mode": mode, "create_parents": create_parents, "user": user}
        body = as_model(models.DirectoryCreate, {**path_fields(path), **fields})
        return await self._transport.call(FileInfo, self._request(routes.MAKE_DIRECTORY, body=body))

    async def move(
        self, source: PathLike, target: PathLike, *, replace: bool = False, user: str | None = None
    ) -> None:
        """Renames a file or directory. `AlreadyExistsError` where the target is there; see `replace`."""
        fields = {**path_fields(source, "source"), **path_fields(target, "target")}
        body = as_model(models.FileMove, {**fields, "replace": replace, "user": user})
        await self._transport.run(self._request(routes.MOVE_FILE, body=body))

    async def remove(
        self, path: PathLike, *, recursive: bool = False, user: str | None = None
    ) -> None:
        """Removes a file, or with `recursive` a directory and all below it."""
        query: dict[str, Value] = {**path_query(path), "user": user}
        query["recursive"] = recursive or None
        await self._transport.run(self._request(routes.REMOVE_FILE, query))

    async def upload(
        self,
        local: str | os.PathLike[str],
        path: PathLike,
        *,
        mode: int | None = None,
        create_parents: bool = True,
        exclusive: bool = False,
        user: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> FileInfo:
        """Copies a file of this machine to the sandbox. `mode`: that of the file, where absent.

        `on_progress` is called with the number of bytes that have gone.
        """
        with await async_io.open_file(local, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode & 0o777 if mode is None else mode
            body = AsyncBody(file, on_progress)
            query = self._write_query(path, mode, create_parents, exclusive, user)
            return await self._write(query, body, exclusive)

    async def download(
        self,
        path: PathLike,
        local: str | os.PathLike[str],
        *,
        user: str | None = None,
        on_progress: OnProgress | None = None,
    ) -> int:
        """Copies a file of the sandbox to this machine, where it appears when all has come. Returns its size.

        `on_progress` is called with the number of bytes that have come.
        """
        target = os.fspath(local)
        part = f"{target}.{secrets.token_hex(4)}.part"
        size = 0
        try:
            with await async_io.blocking(open_hidden, part) as file:
                async for data in self.stream(path, user=user):
                    size += await async_io.blocking(file.write, data)
                    if on_progress is not None:
                        on_progress(size)
                await async_io.blocking(show_hidden, file, part)
            await async_io.blocking(os.replace, part, target)
        except BaseException:
            if os.path.exists(part):
                os.unlink(part)
            raise
        return size

    def _write_query(
        self,
        path: PathLike,
        mode: int | None,
        create_parents: bool,
        exclusive: bool,
        user: str | None,
    ) -> dict[str, Value]:
        flags = {"createParents": create_parents, "exclusive": exclusive or None}
        return {**path_query(path), "user": user, "mode": mode, **flags}

    async def _write(
        self, query: dict[str, Value], body: AsyncBody, exclusive: bool
    ) -> FileInfo:
        request = self._request(routes.WRITE_FILE, query)
        backoff = self._transport.patience()
        while True:
            try:
                async with self._transport.open(
                    request, Deadline(None), content=body.open(), headers=body.headers
                ) as response:
                    return parse_answer(FileInfo, await response.aread())
            except DsecError as error:
                may_have_arrived = error.details.get("reached") is not False
                if not body.can_be_sent or (exclusive and may_have_arrived):
                    raise
                await async_io.sleep(backoff.after(error))

    def _request(
        self,
        route: Route,
        query: Mapping[str, Value] | None = None,
        body: BaseModel | None = None,
    ) -> Request:
        return build_request(route, self._params, query=query, body=body)
