"""Several small pools of connections instead of a large one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

P = TypeVar("P")

# A pool looks at every pair of its connections for each request, so that a large one is slow.
POOL_REQUESTS_MAX = 4
POOLS_MAX = 256


class Shards(Generic[P]):
    """Pools, made when those that are there have enough to do. One request at a time uses one connection."""

    def __init__(self, make: Callable[[], P]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._loads: list[int] = []
        self.pools: list[P] = []

    def take(self) -> int:
        """The place of a pool for one request, to be given back."""
        with self._lock:
            for place, load in enumerate(self._loads):
                if load < POOL_REQUESTS_MAX:
                    break
            else:
                place = self._grow()
            self._loads[place] += 1
            return place

    def give_back(self, place: int) -> None:
        """The request has ended."""
        with self._lock:
            self._loads[place] -= 1

    def _grow(self) -> int:
        """Of a new one, or where there are too many, of the one with the least to do."""
        if len(self.pools) == POOLS_MAX:
            return self._loads.index(min(self._loads))
        self.pools.append(self._make())
        self._loads.append(0)
        return len(self.pools) - 1
