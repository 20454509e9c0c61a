"""The figures of a load: one level is one number of requests at a time."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolstream.core.outcomes import CLASSES, Classified, OutcomeClass
from toolstream.core.percentiles import percentile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolstream.core.exchange import Exchange

PERCENTS = (50, 90, 95, 99)
OK: OutcomeClass = CLASSES[0]
_DETAILS_KEPT = 5


@dataclass
class Level:
    """One level's figures, growing answer by answer.

    Attributes:
        concurrency: Requests at a time.
        planned: Requests in all.
        seconds: How long the level has taken.
        outcomes: Each answer by its class.
        faults: Each class by the answers that it fits, gravest or not.
        first_chunk: Seconds to the first chunk, of streamed answers.
        total: Seconds to the end, of answers that came to one.
        details: Some of the troubles in words, by class.
    """

    concurrency: int
    planned: int
    seconds: float = 0.0
    outcomes: Counter[OutcomeClass] = field(default_factory=Counter)
    faults: Counter[OutcomeClass] = field(default_factory=Counter)
    first_chunk: list[float] = field(default_factory=list)
    total: list[float] = field(default_factory=list)
    details: dict[OutcomeClass, list[str]] = field(default_factory=dict)

    def add(self, exchange: Exchange, classified: Classified) -> None:
        """Count one answer."""
        self.outcomes[classified.outcome] += 1
        self.faults.update([classified.outcome, *classified.others])
        if classified.detail:
            known = self.details.setdefault(classified.outcome, [])
            if classified.detail not in known and len(known) < _DETAILS_KEPT:
                known.append(classified.detail)
        if exchange.trouble is None:
            self.total.append(exchange.seconds)
        if exchange.streaming and exchange.first_chunk_seconds is not None:
            self.first_chunk.append(exchange.first_chunk_seconds)

    @property
    def done(self) -> int:
        """Answers so far."""
        return sum(self.outcomes.values())

    @property
    def per_second(self) -> float:
        """Answers a second."""
        return self.done / self.seconds if self.seconds else 0.0

    def as_json(self) -> dict[str, Any]:
        """For machines. Times are in seconds, None where there is no answer to take them from."""
        return {
            "concurrency": self.concurrency,
            "planned": self.planned,
            "done": self.done,
            "ok": self.outcomes[OK],
            "seconds": round(self.seconds, 3),
            "requestsPerSecond": round(self.per_second, 2),
            "outcomes": {each: self.outcomes[each] for each in CLASSES if self.outcomes[each]},
            "faults": {each: self.faults[each] for each in CLASSES if each != OK and self.faults[each]},
            "firstChunkSeconds": percentiles(self.first_chunk),
            "totalSeconds": percentiles(self.total),
            "details": self.details,
        }


def percentiles(values: Sequence[float]) -> dict[str, float | None]:
    """The percentiles that reports show, by their names (`p50`)."""
    found = {f"p{percent}": percentile(values, percent) for percent in PERCENTS}
    return {name: None if value is None else round(value, 4) for name, value in found.items()}
