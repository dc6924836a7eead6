# Generated from python/libdsec/_async/layers.py by `npm run generate`. Do not edit.

"""Layers, their names, and environments."""

from __future__ import annotations

import os
from collections.abc import Iterator, Callable, Sequence
from contextlib import ExitStack
from typing import BinaryIO, Literal

from libdsec import models_gen as models
from libdsec import routes_gen as routes
from libdsec._sync_gen.body import Body
from libdsec._sync_gen.transport import Transport
from libdsec._core import sync_io
from libdsec._core.request import Request, Value, build_request
from libdsec._core.retry import Deadline
from libdsec.errors import DsecError, UnavailableError, error_of_body

LayerKind = Literal["base", "workspace", "toolkit", "diff", "tools", "grading"]
ImportFormat = Literal["tar", "oci-archive", "docker-archive"]
# A server may be at work on what it has without saying anything.
IMPORT_STALL_S = 900.0

OnProgress = Callable[[models.LayerImportEvent], None]


class Layers:
    """The layers of the store. A name of one is `kind/name:version`; of a version, also `^1` or `latest`."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def import_(
        self,
        source: str | os.PathLike[str] | BinaryIO,
        kind: LayerKind,
        name: str,
        version: str,
        *,
        format: ImportFormat = "tar",
        on_progress: OnProgress | None = None,
    ) -> models.Layer:
        """Makes a layer of an archive (a path or a binary file), and gives it a name.

        The same content is the same layer, so that it can be done again. `on_progress` is called with the
        entries and bytes read so far. Raises `ImportInvalidError`, `ImportLimitError`,
        `AlreadyExistsError`.
        """
        query = {"format": format, "ref": f"{kind}/{name}:{version}"}
        request = build_request(routes.IMPORT_LAYER, query=query)
        with ExitStack() as stack:
            if isinstance(source, (str, os.PathLike)):
                file: BinaryIO = stack.enter_context(sync_io.open_file(source, "rb"))
            else:
                file = source
            body = Body(file)
            backoff = self._transport.patience()
            while True:
                try:
                    return self._import(request, body, on_progress)
                except DsecError as error:
                    if not body.can_be_sent:
                        raise
                    sync_io.sleep(backoff.after(error))

    def _import(
        self, request: Request, body: Body, on_progress: OnProgress | None
    ) -> models.Layer:
        with self._transport.open(
            request, Deadline(None), content=body.open(), headers=body.headers, stall=IMPORT_STALL_S
        ) as response:
            for event in self._transport.lines(response, models.LayerImportEvent):
                if event.error is not None:
                    raise error_of_body(event.error.model_dump(by_alias=True))
                if event.layer is not None:
                    return event.layer
                if on_progress is not None:
                    on_progress(event)
        raise UnavailableError("the import ended without a result")

    def list(
        self, *, limit: int | None = None, page_size: int | None = None
    ) -> Iterator[models.Layer]:
        """All layers, by their ids. `limit`: the most; `page_size`: asked for at a time."""
        return self._transport.items(
            models.LayerPage,
            lambda page: build_request(routes.LIST_LAYERS, query=page),
            lambda page: page.layers,
            limit,
            page_size,
        )

    def get(self, layer_id: str) -> models.Layer:
        """A layer by its id."""
        request = build_request(routes.GET_LAYER, {"layerId": layer_id})
        return self._transport.call(models.Layer, request)

    def verify(self, layer_id: str, *, timeout: float = 3600) -> models.LayerVerifyReport:
        """Reads every byte of a layer and compares the digests."""
        request = build_request(routes.VERIFY_LAYER, {"layerId": layer_id})
        return self._transport.call(models.LayerVerifyReport, request, timeout, wait=timeout)

    def remove(self, layer_id: str) -> None:
        """Removes a layer: every name of it, or none when one is another project's.

        Then it raises `PermissionDeniedError`. Sandboxes that were made of it go on, so its data stays until
        a later collection; done again it does nothing.
        """
        self._transport.run(build_request(routes.REMOVE_LAYER, {"layerId": layer_id}))

    def refs(
        self,
        *,
        kind: LayerKind | None = None,
        name: str | None = None,
        limit: int | None = None,
        page_size: int | None = None,
    ) -> Iterator[models.LayerRef]:
        """The names of layers, and what they mean. `limit`, `page_size`: as for `list`."""
        filters: dict[str, Value] = {"kind": kind, "name": name}
        return self._transport.items(
            models.LayerRefPage,
            lambda page: build_request(routes.LIST_LAYER_REFS, query={**filters, **page}),
            lambda page: page.refs,
            limit,
            page_size,
        )

    def resolve(self, selector: str) -> models.LayerRef:
        """What a name, floating or not, means now."""
        request = build_request(routes.RESOLVE_LAYER_REF, query={"selector": selector})
        return self._transport.call(models.LayerRef, request)

    def tag(self, kind: LayerKind, name: str, version: str, layer_id: str) -> models.LayerRef:
        """Gives a layer a name. `AlreadyExistsError` for a name that means another layer."""
        body = models.LayerRefCreate(layer_id=layer_id)
        params = {"kind": kind, "name": name, "version": version}
        request = build_request(routes.CREATE_LAYER_REF, params, body=body)
        return self._transport.call(models.LayerRef, request)

    def untag(self, kind: LayerKind, name: str, version: str) -> None:
        """Takes a name away; the layer stays. One that is gone already is fine."""
        params = {"kind": kind, "name": name, "version": version}
        self._transport.run(build_request(routes.REMOVE_LAYER_REF, params))


class Environments:
    """Ordered lists of layers under a name: base, workspace, toolkits, diffs."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self, *, limit: int | None = None, page_size: int | None = None
    ) -> Iterator[models.Environment]:
        """All environments, by name. `limit`: the most; `page_size`: asked for at a time."""
        return self._transport.items(
            models.EnvironmentPage,
            lambda page: build_request(routes.LIST_ENVIRONMENTS, query=page),
            lambda page: page.environments,
            limit,
            page_size,
        )

    def get(self, name: str) -> models.Environment:
        """An environment by its name."""
        request = build_request(routes.GET_ENVIRONMENT, {"name": name})
        return self._transport.call(models.Environment, request)

    def put(
        self, name: str, layers: Sequence[str], *, revision: int | None = None
    ) -> models.Environment:
        """Creates or replaces an environment.

        `revision`: replace only this one, and 0: only where there is none; `ConflictError` otherwise. A
        layer that there is none of is `NotFoundError`.
        """
        body = models.EnvironmentPut(layers=[*layers], revision=revision)
        request = build_request(routes.PUT_ENVIRONMENT, {"name": name}, body=body)
        return self._transport.call(models.Environment, request)

    def remove(self, name: str) -> None:
        """Removes an environment, if there is one. Sandboxes made from it are not touched."""
        self._transport.run(build_request(routes.REMOVE_ENVIRONMENT, {"name": name}))
