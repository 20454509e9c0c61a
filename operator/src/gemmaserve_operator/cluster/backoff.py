"""How long to wait before another try."""

import random
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential, capped, and jittered down by up to half, so that many clients do not come back together."""

    first: float
    """Seconds before the first repetition."""
    cap: float
    """The longest wait, in seconds."""

    def delay(self, failures: int) -> float:
        """Seconds to wait after so many failures in a row (1 for the first)."""
        longest = min(self.cap, self.first * 2.0 ** min(failures - 1, 30))
        return longest * jitter(0.5, 1.0)

    def __iter__(self) -> Iterator[float]:
        """Delays without end, from the first on at every iteration."""
        failures = 0
        while True:
            failures += 1
            yield self.delay(failures)


def jitter(low: float, high: float) -> float:
    """A random number between the two, for spreading things in time."""
    return random.uniform(low, high)  # noqa: S311 - not for secrets
