"""The names of the DSec technical report (arXiv 2609.22978, listing 1), on top of the asynchronous client."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from libdsec import models_gen as models
from libdsec._async.client import AsyncClient
from libdsec._async.sandbox import AsyncSandbox, create_sandbox
from libdsec._core.spec import CreateOptions, as_model, milliseconds
from libdsec.errors import InvalidArgumentError, StateConflictError, UnsupportedError

MIB = 2**20
LAYER = re.compile(r"(?:(base|workspace|toolkit|diff)/)?([^/:]+):([^/:]+)")


@dataclass(frozen=True)
class DSecContainerRunArgs:
    """What a container shall be.

    `container_image`: `kind/name:version` is a layer, `name:version` the base of that name, and a plain
    name an environment. `memory_limit_mb`: MiB. `cpu_cores_limit`: processors, also parts of one.
    `ttl_running_stop`: seconds after which it is stopped. `network_rules`: what it may reach: services
    as in `{"pypi": True}`, or kind to targets as in `{"domain": ["example.org"]}`; absent: nothing.
    `init_user`: who runs its commands.
    """

    container_image: str
    memory_limit_mb: int | None = None
    cpu_cores_limit: float | None = None
    ttl_running_stop: float | None = None
    network_rules: Mapping[str, Sequence[str] | bool] | None = None
    init_user: str | None = None


class DSecClient:
    """A connection to a server, which `open` makes. As `AsyncClient` otherwise."""

    def __init__(self, url: str | None = None, api_key: str | None = None) -> None:
        self._arguments = (url, api_key)
        self._client: AsyncClient | None = None

    async def open(self) -> DSecClient:
        """Finds the server and asks whether it answers; returns itself."""
        if self._client is not None:
            return self
        client = AsyncClient(*self._arguments)
        try:
            await client.version()
        except BaseException:
            await client.close()
            raise
        self._client = client
        return self

    async def close(self) -> None:
        """Closes every connection; sandboxes run on."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def __aenter__(self) -> DSecClient:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def run_container(
        self, args: DSecContainerRunArgs, timeout: float | None = None
    ) -> AsyncSandbox:
        """Makes a sandbox and waits until it is ready. `timeout`: seconds."""
        if self._client is None:
            raise StateConflictError("the client is not open: await client.open() first")
        environment, options = container_options(args)
        options["timeout"] = timeout
        transport = self._client._transport
        return AsyncSandbox(transport, await create_sandbox(transport, environment, options))


def container_options(args: DSecContainerRunArgs) -> tuple[str | None, CreateOptions]:
    """The same in the terms of `AsyncClient.create`."""
    environment, layers = image_parts(args.container_image)
    cores, memory, ttl = args.cpu_cores_limit, args.memory_limit_mb, args.ttl_running_stop
    limits = models.SandboxLimits(
        cpu_millicores=None if cores is None else round(cores * 1000),
        memory_bytes=None if memory is None else memory * MIB,
    )
    options = CreateOptions(
        backend="container",
        layers=layers,
        limits=limits,
        network=[*network_rules(args.network_rules or {})] or None,
        user=args.init_user,
    )
    if ttl is not None:
        options["ttl"] = models.Ttl(lifetime_ms=milliseconds(ttl))
    return environment, options


def network_rules(rules: Mapping[str, Sequence[str] | bool]) -> Iterator[models.NetworkRule]:
    """A rule for each target, and one for each service that is `True`."""
    for kind, targets in rules.items():
        if targets is True:
            yield as_model(models.NetworkRule, {"kind": "service", "target": kind})
            continue
        for target in targets or ():
            yield as_model(models.NetworkRule, {"kind": kind, "target": target})


def image_parts(image: str) -> tuple[str | None, list[str] | None]:
    """An environment, or layers."""
    if image and not re.search(r"[/:]", image):
        return image, None
    match = LAYER.fullmatch(image)
    if match is None:
        raise InvalidArgumentError(
            f"{image!r} is no image: use kind/name:version, name:version or an environment",
            details={"field": "container_image"},
        )
    kind, name, version = match.groups()
    return None, [f"{kind or 'base'}/{name}:{version}"]
