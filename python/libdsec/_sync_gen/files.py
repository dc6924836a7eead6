# Generated from python/libdsec/_async/files.py by `npm run generate`. Do not edit.

"""The files of a sandbox."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping

import httpx
from pydantic import BaseModel

from libdsec import models_gen as models
from libdsec import routes_gen as routes
from libdsec._sync_gen.body import Body, Data
from libdsec._sync_gen.transport import Transport
from libdsec._core import sync_io
from libdsec._core.paths import FileInfo, FileInfoPage, PathLike, path_fields, path_query
from libdsec._core.request import Request, Value, build_request
from libdsec._core.retry import Backoff, Deadline
from libdsec._core.route import Route
from libdsec._core.spec import as_model
from libdsec.errors import ConflictError, DsecError, NotFoundError


class Files:
    """Files of a sandbox, of any size in constant memory.

    Paths are text, bytes or `PurePath`; relative ones start at the working directory of the sandbox. `user`:
    whose rights are used, those of the sandbox's own user where absent. A symbolic link never leads out of the
    sandbox. All raise `NotFoundError` for what is not there and `PermissionDeniedError` for what that user may not do.
    """

    def __init__(self, transport: Transport, sandbox: str) -> None:
        self._transport = transport
        self._params = {"sandboxId": sandbox}

    def read(self, path: PathLike, *, user: str | None = None) -> bytes:
        """All of a file."""
        parts = [data for data in self.stream(path, user=user)]
        return b"".join(parts)

    def read_text(self, path: PathLike, *, user: str | None = None) -> str:
        """All of a file, as UTF-8. `UnicodeDecodeError` where it is none."""
        return (self.read(path, user=user)).decode()

    def stream(
        self,
        path: PathLike,
        *,
        offset: int = 0,
        length: int | None = None,
        user: str | None = None,
    ) -> Iterator[bytes]:
        """The bytes of a file, or of a stretch of it, as they come.

        A lost connection is made anew where it was lost; `ConflictError` where the file has another size by then.
        """
        sizes: list[str | None] = []

        def request_at(at: int) -> Request:
            left = None if length is None else offset + length - at
            query: dict[str, Value] = {**path_query(path), "user": user}
            return self._request(routes.READ_FILE, {**query, "offset": at, "lengthBytes": left})

        def check(response: httpx.Response) -> None:
            sizes.append(response.headers.get("dsec-size-bytes"))
            if sizes[0] != sizes[-1]:
                raise ConflictError(f"{path!r} has changed while it was read")

        for data in self._transport.resumed(Deadline(None), request_at, offset, check):
            yield data

    def write(
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

        `data`: bytes, text (as UTF-8), a binary file from where it stands, or what gives bytes one after the
        other. `mode`: permission bits. `exclusive`: `AlreadyExistsError` instead of replacing. What cannot be read
        a second time is not sent again after a lost connection: then `UnavailableError`, and nothing is written.
        """
        query: dict[str, Value] = {
            **path_query(path),
            "user": user,
            "mode": mode,
            "createParents": create_parents,
            "exclusive": exclusive or None,
        }
        request = self._request(routes.WRITE_FILE, query)
        body = Body(data)
        backoff = Backoff(Deadline(None))
        while True:
            try:
                with self._transport.open(
                    request, Deadline(None), content=body.open(), headers=body.headers
                ) as response:
                    return FileInfo.model_validate_json(response.read())
            except DsecError as error:
                if not body.can_be_sent:
                    raise
                sync_io.sleep(backoff.after(error))

    def stat(
        self, path: PathLike, *, follow_symlinks: bool = True, user: str | None = None
    ) -> FileInfo:
        """What a path names."""
        query: dict[str, Value] = {**path_query(path), "user": user}
        query["followSymlinks"] = follow_symlinks
        return self._transport.call(FileInfo, self._request(routes.STAT_FILE, query))

    def exists(self, path: PathLike, *, user: str | None = None) -> bool:
        """Whether it names something."""
        try:
            self.stat(path, user=user)
        except NotFoundError:
            return False
        return True

    def list(self, path: PathLike, *, user: str | None = None) -> Iterator[FileInfo]:
        """The entries of a directory, in its own order."""

        def request_of(cursor: str | None) -> Request:
            query: dict[str, Value] = {**path_query(path), "user": user, "cursor": cursor}
            return self._request(routes.LIST_FILES, query)

        for page in self._transport.pages(FileInfoPage, request_of):
            for entry in page.entries:
                yield entry

    def mkdir(
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
        return self._transport.call(FileInfo, self._request(routes.MAKE_DIRECTORY, body=body))

    def move(
        self, source: PathLike, target: PathLike, *, replace: bool = False, user: str | None = None
    ) -> None:
        """Renames a file or directory. `AlreadyExistsError` where the target is there, unless it may be replaced."""
        fields = {**path_fields(source, "source"), **path_fields(target, "target")}
        body = as_model(models.FileMove, {**fields, "replace": replace, "user": user})
        self._transport.run(self._request(routes.MOVE_FILE, body=body))

    def remove(
        self, path: PathLike, *, recursive: bool = False, user: str | None = None
    ) -> None:
        """Removes a file, or with `recursive` a directory and all below it."""
        query: dict[str, Value] = {**path_query(path), "user": user}
        query["recursive"] = recursive or None
        self._transport.run(self._request(routes.REMOVE_FILE, query))

    def upload(
        self,
        local: str | os.PathLike[str],
        path: PathLike,
        *,
        mode: int | None = None,
        create_parents: bool = True,
        user: str | None = None,
    ) -> FileInfo:
        """Copies a file of this machine to the sandbox. `mode`: that of the file, where absent."""
        with sync_io.open_file(local, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode & 0o777 if mode is None else mode
            return self.write(path, file, mode=mode, create_parents=create_parents, user=user)

    def download(
        self, path: PathLike, local: str | os.PathLike[str], *, user: str | None = None
    ) -> int:
        """Copies a file of the sandbox to this machine, where it appears when all has come. Returns its size."""
        target = os.fspath(local)
        part = f"{target}.{secrets.token_hex(4)}.part"
        size = 0
        try:
            with sync_io.open_file(part, "xb") as file:
                for data in self.stream(path, user=user):
                    size += sync_io.blocking(file.write, data)
            sync_io.blocking(os.replace, part, target)
        except BaseException:
            if os.path.exists(part):
                os.unlink(part)
            raise
        return size

    def _request(
        self,
        route: Route,
        query: Mapping[str, Value] | None = None,
        body: BaseModel | None = None,
    ) -> Request:
        return build_request(route, self._params, query=query, body=body)
