"""The form of a route; the table of all of them is generated (`libdsec.routes_gen`)."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Route(NamedTuple):
    """`effect` says what a repetition does: `keyed` ones need a key to be safe."""

    name: str
    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    effect: Literal["read", "idempotent", "keyed"]
