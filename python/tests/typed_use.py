"""Never run: a type checker reads it, and knows what users may rely on."""

from __future__ import annotations

from collections.abc import Iterator

from typing_extensions import assert_type

from libdsec import (
    AsyncSandbox,
    Client,
    ExecResult,
    OutputChunk,
    Sandbox,
    SandboxFailure,
    SandboxLimits,
    models,
)


def ordinary() -> None:
    with Client(timeout=5) as client:
        box = client.create("example", limits=SandboxLimits(memory_bytes=2**30), ttl={"idle_ms": 1})
        assert_type(box.exec(["ls"], check=True), ExecResult)
        assert_type(client.create_many(2, raise_on_failure=True), Iterator[Sandbox])
        for one in client.create_many(2, layers=["base/a:latest"], job="j"):
            if isinstance(one, SandboxFailure):
                assert_type(one.error.code, str)
            else:
                assert_type(one.info, models.Sandbox)
        for chunk in box.start("make").stream():
            assert_type(chunk, OutputChunk)
        assert_type(box.files.read(b"/\xff"), bytes)


async def asynchronous() -> None:
    async with await AsyncSandbox.create("example") as box:
        assert_type(await box.exec("true"), ExecResult)
        async for entry in box.files.list("/"):
            assert_type(entry.name_bytes, bytes)


def mistakes(client: Client) -> None:
    client.create("example", memory=5)  # type: ignore[call-arg]
    client.create("example", backend="docker")  # type: ignore[arg-type]
    client.create("example").exec(5)  # type: ignore[arg-type]
