"""Values of the scenario table, and what matches them."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from typing import Any

import libdsec

FORMS = {"python": "", "python-async": "Async"}
SPECIAL = ("$", "$bytes", "$repeat")


def library(name: str, form: str) -> Any:
    """What a name of the library means in a form."""
    return getattr(libdsec, FORMS[form] + name, None) or getattr(libdsec, name)


def member(value: Any, name: str) -> Any:
    """A field, attribute, key or item; `None` where there is none."""
    if isinstance(value, list):
        return value[int(name)]
    if isinstance(value, Mapping):
        return value.get(name)
    return getattr(value, name, None)


def look_up(variables: Mapping[str, Any], path: str) -> Any:
    value: Any = variables
    for name in path.split("."):
        value = member(value, name)
    return value


class Values:
    """Of one scenario in one form."""

    def __init__(self, form: str, variables: dict[str, Any]) -> None:
        self.form = form
        self.variables = variables

    def of(self, value: Any) -> Any:
        """A value of the table as the library takes it."""
        if isinstance(value, str):
            return re.sub(
                r"\$\{([\w.]+)\}", lambda found: str(look_up(self.variables, found[1])), value
            )
        if isinstance(value, list):
            return [self.of(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "$" in value:
            return look_up(self.variables, value["$"])
        if "$bytes" in value:
            return base64.b64decode(value["$bytes"])
        if "$repeat" in value:
            text, times = value["$repeat"]
            return text * times
        fields = {name: self.of(field) for name, field in value.items() if name != "$new"}
        return library(value["$new"], self.form)(**fields) if "$new" in value else fields

    def mismatch(self, found: Any, wanted: Any) -> str | None:
        """Why a value does not match; `None` when it does."""
        if isinstance(wanted, dict) and not any(name in wanted for name in SPECIAL):
            return self._object_mismatch(found, wanted)
        if isinstance(wanted, list):
            if not isinstance(found, (list, tuple)) or len(found) != len(wanted):
                return differ(found, wanted)
            problems = (self.mismatch(*pair) for pair in zip(found, wanted))
            return next((f"{at}: {why}" for at, why in enumerate(problems) if why), None)
        return None if same(found, self.of(wanted)) else differ(found, wanted)

    def _object_mismatch(self, found: Any, wanted: dict[str, Any]) -> str | None:
        for name, part in wanted.items():
            if not name.startswith("$"):
                why = self.mismatch(member(found, name), part)
                if why is not None:
                    return f"{name}: {why}"
            elif not self._fits(found, name, part):
                return differ(found, wanted)
        return differ(found, wanted) if found is None else None

    def _fits(self, found: Any, form: str, part: Any) -> bool:
        match form:
            case "$matches":
                return isinstance(found, str) and re.search(part, found) is not None
            case "$has":
                if isinstance(found, (list, tuple)):
                    return any(self.mismatch(item, part) is None for item in found)
                return str(self.of(part)) in text_of(found)
            case "$length":
                return len(found) == part
            case "$least":
                return isinstance(found, (int, float)) and found >= part
            case "$is":
                return isinstance(found, library(part, self.form))
            case "$not":
                return self.mismatch(found, part) is not None
        raise AssertionError(f"the table uses a form that is not known: {form}")


def same(found: Any, wanted: Any) -> bool:
    if isinstance(found, bytes) and isinstance(wanted, str):
        return found == wanted.encode()
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    return bool(found == wanted)


def text_of(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def differ(found: Any, wanted: Any) -> str:
    return f"{text_of(found)[:300]!r} instead of {json.dumps(wanted, default=str)[:300]}"
