"""`toolstream load`: so many requests at each level of concurrency, each answer classified."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from toolstream.core.exchange import CHAT, Endpoint
from toolstream.core.levels import OK, Level
from toolstream.core.outcomes import Classified, classify
from toolstream.core.readers import read
from toolstream.core.scenarios import THREE_PARALLEL, ExpectedCall, Question
from toolstream.edges.pool import Stop, run_all

if TYPE_CHECKING:
    from toolstream.core.exchange import Answer
    from toolstream.edges.client import Client

KEPT_PER_CLASS = 20
"""Failed answers of a class that are kept: enough to see a kind, and a bound for the disk."""


@dataclass(frozen=True)
class LoadPlan:
    """What a load does.

    Attributes:
        levels: Requests at a time, one level after the other.
        requests: Requests of each level.
        modes: For each request in turn, whether it streams.
        endpoint: Whose protocol is spoken.
        body: The request; None sends the scenario with three parallel calls.
        expected: The right calls; None where they are not known.
        token_ids: Ask vLLM for the token ids, which make kept answers replayable word by word.
        extra: Fields laid over each request; whether it streams is not among them.
    """

    levels: Sequence[int]
    requests: int
    modes: Sequence[bool] = (True,)
    endpoint: Endpoint = CHAT
    body: Mapping[str, Any] | None = None
    expected: Sequence[ExpectedCall] | None = THREE_PARALLEL.expected
    token_ids: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)

    def request(self, number: int, model: str) -> dict[str, Any]:
        """The body of request `number`."""
        streaming = self.modes[number % len(self.modes)]
        if self.body is None:
            body = Question(THREE_PARALLEL, self.endpoint, streaming, "auto").body(model, **self.extra)
        else:
            body = {"model": model, **self.body, **self.extra}
        body["stream"] = streaming
        if self.token_ids and self.endpoint == CHAT:
            body["return_token_ids"] = True
        return body


@dataclass(frozen=True)
class Failure:
    """A failed answer that is kept.

    Attributes:
        name: Unique in a load: level, class and number.
        classified: Its class.
        answer: What came.
        request: What was asked.
    """

    name: str
    classified: Classified
    answer: Answer
    request: Mapping[str, Any]


@dataclass
class LoadResult:
    """Levels that were begun, and failed answers kept."""

    levels: list[Level]
    failures: list[Failure]


async def run_load(
    client: Client, model: str, plan: LoadPlan, *, stop: Stop, seen: Callable[[Level], None]
) -> LoadResult:
    """Run a load.

    Args:
        client: An open client.
        model: The model to ask for.
        plan: What to do.
        stop: Ends it early; what came by then is in the result.
        seen: Told of each level as it begins, and after each of its answers.
    """
    result = LoadResult([], [])
    for concurrency in plan.levels:
        if stop.is_set:
            break
        level = Level(concurrency, plan.requests)
        result.levels.append(level)
        seen(level)
        run = _LevelRun(client, model, plan, level, result.failures, seen)
        await run_all(range(plan.requests), run.ask, run.take, concurrency=concurrency, stop=stop)
        run.touch()
    return result


@dataclass
class _LevelRun:
    """One level under way."""

    client: Client
    model: str
    plan: LoadPlan
    level: Level
    failures: list[Failure]
    seen: Callable[[Level], None]
    started: float = field(default_factory=time.perf_counter)
    kept: Counter[str] = field(default_factory=Counter)

    async def ask(self, number: int) -> tuple[Answer, Classified]:
        exchange = await self.client.send(self.plan.endpoint, self.plan.request(number, self.model))
        answer = read(exchange)
        return answer, classify(answer, self.plan.expected)

    def take(self, number: int, result: tuple[Answer, Classified]) -> None:
        answer, classified = result
        self.level.add(answer.exchange, classified)
        self.touch()
        if classified.outcome != OK and self.kept[classified.outcome] < KEPT_PER_CLASS:
            self.kept[classified.outcome] += 1
            name = f"c{self.level.concurrency}-{classified.outcome}-{number}"
            self.failures.append(Failure(name, classified, answer, self.plan.request(number, self.model)))
        self.seen(self.level)

    def touch(self) -> None:
        """Bring the level's time up to now."""
        self.level.seconds = time.perf_counter() - self.started
