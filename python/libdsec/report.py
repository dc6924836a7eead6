"""The names of the DSec technical report (arXiv 2609.22978, listing 1), on top of the asynchronous client."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from libdsec import models_gen as models
from libdsec._async.client import AsyncClient
from libdsec._async.sandbox import AsyncSandbox, create_sandbox
from libdsec._core.result import ExecResult
from libdsec._core.spec import CreateOptions, milliseconds
from libdsec.errors import InvalidArgumentError, UnsupportedError

MIB = 2**20
LAYER = re.compile(r"(?:(base|workspace|toolkit|diff)/)?([^/:]+):([^/:]+)")


@dataclass(frozen=True)
class DSecContainerRunArgs:
    """What a container shall be.

    `container_image`: `kind/name:version` is a layer, `name:version` the base of that name, and a plain name an
    environment. `memory_limit_mb`: MiB. `cpu_cores_limit`: processors, also parts of one. `ttl_running_stop`:
    seconds after which it is stopped. `network_rules`: what it may reach, by name; rules that allow something
    are not supported yet. `init_user`: who runs its commands.
    """

    container_image: str
    memory_limit_mb: int | None = None
    cpu_cores_limit: float | None = None
    ttl_running_stop: float | None = None
    network_rules: Mapping[str, object] | None = None
    init_user: str | None = None


class DSecSandbox(AsyncSandbox):
    """A sandbox with the report's name for running a command."""

    async def run_shell(self, command: str, *, timeout: float | None = None) -> ExecResult:
        """Runs a text in `/bin/sh -c`. `timeout`: seconds of running time."""
        return await self.exec(command, timeout=timeout)


class DSecClient:
    """A connection to a server, which `open` makes. As `AsyncClient` otherwise."""

    def __init__(self, url: str | None = None, api_key: str | None = None) -> None:
        self._arguments = (url, api_key)
        self._client: AsyncClient | None = None

    async def open(self) -> None:
        """Finds the server and asks whether it answers."""
        if self._client is not None:
            return
        client = AsyncClient(*self._arguments)
        try:
            await client.version()
        except BaseException:
            await client.close()
            raise
        self._client = client

    async def close(self) -> None:
        """Closes every connection; sandboxes run on."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def __aenter__(self) -> DSecClient:
        await self.open()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def run_container(
        self, args: DSecContainerRunArgs, timeout: float | None = None
    ) -> DSecSandbox:
        """Makes a sandbox and waits until it is ready. `timeout`: seconds."""
        if self._client is None:
            raise InvalidArgumentError("the client is not open: await client.open() first")
        environment, options = container_options(args)
        options["timeout"] = timeout
        transport = self._client._transport
        return DSecSandbox(transport, await create_sandbox(transport, environment, options))


def container_options(args: DSecContainerRunArgs) -> tuple[str | None, CreateOptions]:
    """The same in the terms of `AsyncClient.create`."""
    allowed = [name for name, rule in (args.network_rules or {}).items() if rule]
    if allowed:
        raise UnsupportedError(
            f"sandboxes cannot reach {', '.join(allowed)}: network rules do not exist yet",
            details={"field": "network_rules"},
        )
    environment, layers = image_parts(args.container_image)
    cores, memory, ttl = args.cpu_cores_limit, args.memory_limit_mb, args.ttl_running_stop
    limits = models.SandboxLimits(
        cpu_millicores=None if cores is None else round(cores * 1000),
        memory_bytes=None if memory is None else memory * MIB,
    )
    options = CreateOptions(limits=limits, user=args.init_user, layers=layers)
    if ttl is not None:
        options["ttl"] = models.Ttl(lifetime_ms=milliseconds(ttl))
    return environment, options


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
