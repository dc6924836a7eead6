"""Plays the steps of a scenario, waiting for whatever has to be waited for."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from scenarios.values import Values, library, look_up, member

AGAIN_S = 0.2


class Unexpected(Exception):
    """What was not as expected, and in which step."""


class Player:
    """The same for both forms: calls of the synchronous one run in threads, so that steps can be begun."""

    def __init__(self, form: str, variables: dict[str, Any]) -> None:
        self._form = form
        self._variables = variables
        self._values = Values(form, variables)

    async def end(self) -> None:
        """Waits for nothing that was begun any more."""
        begun = [value for value in self._variables.values() if isinstance(value, asyncio.Task)]
        for task in begun:
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)

    async def play(self, steps: list[dict[str, Any]], above: str = "") -> None:
        for index, step in enumerate(steps):
            place = f"{above}{index}"
            try:
                await self._step(step, place)
            except Unexpected:
                raise
            except Exception as problem:
                name = step.get("call") or step.get("get") or next(iter(step))
                raise Unexpected(
                    f"step {place} ({name}): {type(problem).__name__}: {problem}"
                ) from problem

    async def _step(self, step: dict[str, Any], place: str) -> None:
        if "with" in step:
            return await self._inside(step, place)
        if "repeat" in step:
            for _ in range(step["repeat"]):
                if self._variables[step["until"]].done():
                    break
                await self.play(step["steps"], f"{place}.")
            return
        if "begin" in step:
            task = asyncio.ensure_future(self._evaluate(step["begin"]))
            self._variables[step["save"]] = task
            await asyncio.sleep(0)
            return
        end = time.monotonic() + step.get("within", 0)
        while True:
            try:
                return await self._once(step)
            except Exception:
                if time.monotonic() >= end:
                    raise
                await asyncio.sleep(AGAIN_S)

    async def _once(self, step: dict[str, Any]) -> None:
        try:
            result = await self._evaluate(step)
        except Exception as error:
            if "error" not in step:
                raise
            return self._check_error(error, step["error"])
        if "error" in step:
            raise AssertionError(f"succeeded instead of {step['error']}")
        if "save" in step:
            self._variables[step["save"]] = result
        if "expect" in step:
            why = self._values.mismatch(result, step["expect"])
            assert why is None, why

    def _check_error(self, error: Exception, wanted: dict[str, Any]) -> None:
        fields = {name: value for name, value in wanted.items() if name != "class"}
        if "class" in wanted and not isinstance(error, library(wanted["class"], self._form)):
            raise AssertionError(f"{error!r} instead of {wanted['class']}") from error
        why = self._values.mismatch(error, fields)
        assert why is None, f"of the error {why}"

    async def _inside(self, step: dict[str, Any], place: str) -> None:
        context = self._variables[step["with"]]
        if hasattr(context, "__aenter__"):
            async with context:
                await self.play(step["steps"], f"{place}.")
            return
        await asyncio.to_thread(context.__enter__)
        try:
            await self.play(step["steps"], f"{place}.")
        finally:
            await asyncio.to_thread(context.__exit__, None, None, None)

    async def _evaluate(self, step: dict[str, Any]) -> Any:
        if "end" in step:
            return await self._variables[step["end"]]
        if "write_local" in step:
            data = self._values.of(step["data"])
            content = data.encode() if isinstance(data, str) else data
            return Path(self._values.of(step["write_local"])).write_bytes(content)
        if "read_local" in step:
            return Path(self._values.of(step["read_local"])).read_bytes()
        if "call" not in step:
            value = look_up(self._variables, step["get"])
            return await self._take(value, step["take"]) if "take" in step else value
        method, arguments, options = self._callee(step)
        if self._form == "python-async":
            value = method(*arguments, **options)
            value = await value if inspect.isawaitable(value) else value
        else:
            value = await asyncio.to_thread(method, *arguments, **options)
        return await self._take(value, step["take"]) if "take" in step else value

    def _callee(self, step: dict[str, Any]) -> tuple[Any, list[Any], dict[str, Any]]:
        first, *rest = step["call"].split(".")
        holder = library(first, self._form) if first[0].isupper() else self._variables[first]
        for name in rest:
            holder = member(holder, name)
        assert callable(holder), f"there is no method {step['call']}"
        return (
            holder,
            self._values.of(step.get("args", [])),
            self._values.of(step.get("options", {})),
        )

    async def _take(self, items: Any, how: Any) -> Any:
        if hasattr(items, "__aiter__"):
            return await take(items.__aiter__(), how)
        iterator = iter(items)
        try:
            return await take(in_thread(iterator), how)
        finally:
            if hasattr(iterator, "close"):
                await asyncio.to_thread(iterator.close)


async def in_thread(items: Any) -> AsyncIterator[Any]:
    over = object()
    while (item := await asyncio.to_thread(next, items, over)) is not over:
        yield item


async def take(items: AsyncIterator[Any], how: Any) -> Any:
    """The items of an iteration, in one of the forms of the table."""
    taken: list[Any] = []
    streams = {"stdout": b"", "stderr": b""}
    async for item in items:
        if how == "all" or isinstance(how, int):
            taken.append(item)
            if len(taken) == how:
                break
            continue
        stream, data = ("stdout", item) if isinstance(item, bytes) else (item.stream, item.data)
        streams[stream] += data
        if isinstance(how, dict) and how["until"].encode() in streams["stdout"]:
            break
    if hasattr(items, "aclose"):
        await items.aclose()
    if how == "all" or isinstance(how, int):
        return taken
    if isinstance(how, dict):
        assert how["until"].encode() in streams["stdout"], f"{streams!r} has no {how['until']!r}"
    return streams if how == "output" else streams["stdout"]
