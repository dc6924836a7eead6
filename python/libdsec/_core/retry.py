"""When and how often a request is sent again, and how long a caller waits."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from libdsec.errors import DsecError, Timeout

# A server that is started again is there within some seconds.
ATTEMPTS_MAX = 10
FIRST_DELAY_S = 0.05
DELAY_S_MAX = 2.0
# A connection that has held for so long was a good one.
HELD_S = 5.0

# Nothing was carried out, or nobody knows; every request can be repeated, by its nature or by its key.
TRANSIENT = frozenset({"unavailable", "overloaded", "rate-limited"})


class Deadline:
    """The time that a caller gives a call with all its attempts. `None`: as long as it takes."""

    def __init__(self, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._end = None if seconds is None else clock() + seconds

    def left(self) -> float | None:
        """Seconds, not less than 0."""
        return None if self._end is None else max(0.0, self._end - self._clock())

    def at_most(self, seconds: float) -> float:
        """So many seconds, or what is left of it."""
        left = self.left()
        return seconds if left is None else min(seconds, left)

    @property
    def is_over(self) -> bool:
        return self.left() == 0

    def error(self) -> Timeout:
        return Timeout(f"not done within {self.seconds:g} s")


class Backoff:
    """How long to wait after each failure in a row: a growing time, a random half of it left away.

    So callers that failed together do not come back together. It gives up when the deadline is over, and
    after `attempts_max` attempts, or where there is `patience`, after so many seconds without progress.
    """

    def __init__(
        self,
        deadline: Deadline,
        *,
        patience: float | None = None,
        attempts_max: int = ATTEMPTS_MAX,
        rand: Callable[[], float] = random.random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._deadline = deadline
        self._patience = patience
        self._attempts_max = attempts_max
        self._rand = rand
        self._clock = clock
        self._failures = 0
        self._failing_since = 0.0
        self._opened: float | None = None

    def reset(self) -> None:
        """There was progress: the next failure is the first one again."""
        self._failures = 0

    def opened(self) -> None:
        """A stream is open. If it holds for a while that is progress too, though nothing may come."""
        self._opened = self._clock()

    def after(self, error: DsecError) -> float:
        """Seconds until the next attempt. Raises the error where there is none."""
        if self._opened is not None and self._clock() - self._opened >= HELD_S:
            self.reset()
        self._opened = None
        if self._failures == 0:
            self._failing_since = self._clock()
        self._failures += 1
        ceiling = min(DELAY_S_MAX, FIRST_DELAY_S * 2.0 ** min(self._failures - 1, 10))
        delay = max(ceiling * (1 + self._rand()) / 2, _retry_after(error))
        left = self._deadline.left()
        if error.code not in TRANSIENT or self._is_exhausted(delay):
            raise error
        if left is not None and delay >= left:
            raise error
        return delay

    def _is_exhausted(self, delay: float) -> bool:
        if self._patience is None:
            return self._failures >= self._attempts_max
        return self._clock() + delay - self._failing_since > self._patience


def _retry_after(error: DsecError) -> float:
    value = error.details.get("retryAfterMs")
    return value / 1000 if isinstance(value, (int, float)) else 0.0
