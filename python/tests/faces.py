"""Both faces of the SDK behind the same calls, so that each test drives both."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator
from typing import Any

import libdsec


class Blocking:
    """An asynchronous object whose methods are waited for."""

    def __init__(self, value: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._value = value
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._value, name)
        if not inspect.ismethod(member):
            return self._wrap(member)
        return lambda *arguments, **named: self._settle(member(*arguments, **named))

    def __enter__(self) -> Any:
        return self._settle(self._value.__aenter__())

    def __exit__(self, *arguments: Any) -> None:
        self._settle(self._value.__aexit__(*arguments))

    def __iter__(self) -> Iterator[Any]:
        return self._items(self._value.__aiter__())

    def _settle(self, outcome: Any) -> Any:
        if inspect.isasyncgen(outcome):
            return self._items(outcome)
        if inspect.isawaitable(outcome):
            outcome = self._loop.run_until_complete(outcome)  # type: ignore[arg-type]
        return self._wrap(outcome)

    def _items(self, items: Any) -> Iterator[Any]:
        try:
            while True:
                try:
                    yield self._wrap(self._loop.run_until_complete(items.__anext__()))
                except StopAsyncIteration:
                    return
        finally:
            self._loop.run_until_complete(items.aclose())

    def _wrap(self, value: Any) -> Any:
        is_face = type(value).__module__.startswith("libdsec._async")
        return Blocking(value, self._loop) if is_face else value


class SyncFace:
    """The synchronous one, as it is."""

    def client(self, url: str, key: str, **options: Any) -> Any:
        return libdsec.Client(url, key, **options)

    def create(self, *arguments: Any, **options: Any) -> Any:
        return libdsec.Sandbox.create(*arguments, **options)

    def close(self) -> None:
        pass


class AsyncFace:
    """The asynchronous one, waited for."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()

    def client(self, url: str, key: str, **options: Any) -> Any:
        return Blocking(libdsec.AsyncClient(url, key, **options), self._loop)

    def create(self, *arguments: Any, **options: Any) -> Any:
        made = libdsec.AsyncSandbox.create(*arguments, **options)
        return Blocking(self._loop.run_until_complete(made), self._loop)

    def close(self) -> None:
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()


def all_exported(face: str) -> dict[str, Any]:
    """Public classes of a face (`Async` or nothing), by the name that they have in the other one too."""
    return {
        name.removeprefix("Async"): value
        for name, value in vars(libdsec).items()
        if inspect.isclass(value)
        and value.__module__.startswith(
            "libdsec._async" if face == "Async" else "libdsec._sync_gen"
        )
    }
