"""A request as data: it stays the same over all attempts, so that a repetition is known for one."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote, urlencode

from pydantic import BaseModel

from libdsec._core.asked import Asked, asked_of
from libdsec._core.route import Route

Value = str | int | bool | Sequence[str] | None


@dataclass(frozen=True)
class Request:
    """`content`: its JSON body, if it has one. Bodies of other kinds are given when it is sent.

    `asked`: what it is about, for its errors.
    """

    route: Route
    target: str
    headers: Mapping[str, str]
    content: bytes | None = None
    asked: Asked = Asked()

    def with_bytes(self, content: bytes) -> Request:
        """The same with a body that is not JSON."""
        headers = {**self.headers, "content-type": "application/octet-stream"}
        return replace(self, headers=headers, content=content)


def new_key() -> str:
    """An idempotency key: one for each call, however often it is sent."""
    return secrets.token_hex(16)


def build_request(
    route: Route,
    params: Mapping[str, str | int] | None = None,
    *,
    query: Mapping[str, Value] | None = None,
    body: BaseModel | None = None,
    key: str | None = None,
) -> Request:
    """`key` is made here for an operation that needs one and has none."""
    headers = {
        "traceparent": f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-00",
        "x-request-id": secrets.token_hex(12),
    }
    if route.effect == "keyed":
        headers["idempotency-key"] = key or new_key()
    content = None
    fields: dict[str, Any] = {}
    if body is not None:
        fields = body.model_dump(by_alias=True, exclude_none=True)
        content = body.model_dump_json(by_alias=True, exclude_none=True).encode()
        headers["content-type"] = "application/json"
    asked = asked_of({**fields, **(query or {}), **(params or {})})
    return Request(route, _target(route.path, params or {}, query or {}), headers, content, asked)


def _target(path: str, params: Mapping[str, str | int], query: Mapping[str, Value]) -> str:
    for name, value in params.items():
        path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
    pairs = [(name, text) for name, value in query.items() for text in _texts(value)]
    return f"{path}?{urlencode(pairs, quote_via=quote)}" if pairs else path


def _texts(value: Value) -> list[str]:
    if value is None:
        return []
    if isinstance(value, bool):
        return ["true" if value else "false"]
    if isinstance(value, (str, int)):
        return [str(value)]
    return [str(item) for item in value]
