"""`toolstream check`: ask each kind of question, judge each answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from toolstream.core.exchange import CHAT
from toolstream.core.readers import read
from toolstream.core.rules import PROFILES, Profile
from toolstream.core.scenarios import Question, matrix
from toolstream.core.verdicts import Judged, judge
from toolstream.edges.pool import Stop, run_all

if TYPE_CHECKING:
    from collections.abc import Callable

    from toolstream.core.exchange import Endpoint
    from toolstream.edges.client import Client


def gate_questions(requests: int, endpoints: Sequence[Endpoint] = (CHAT,)) -> list[Question]:
    """As many questions as asked for: the matrix, streams first, over and over."""
    return [*islice(cycle(matrix(endpoints)), requests)]


@dataclass(frozen=True)
class CheckPlan:
    """What is asked, and how it is judged.

    Attributes:
        questions: What to ask.
        profiles: Whose rules count.
        expect_calls: An answer without calls is a breach.
        concurrency: Questions at a time.
        extra: Fields laid over each request.
    """

    questions: Sequence[Question]
    profiles: Sequence[Profile] = PROFILES
    expect_calls: bool = False
    concurrency: int = 4
    extra: Mapping[str, Any] = field(default_factory=dict)


async def run_check(
    client: Client, model: str, plan: CheckPlan, *, stop: Stop, seen: Callable[[Judged], None]
) -> list[Judged]:
    """Ask the questions and judge the answers.

    Args:
        client: An open client.
        model: The model to ask for.
        plan: What to ask and how to judge it.
        stop: Ends it early; what is judged by then is returned.
        seen: Told of each judgement as it is made.

    Returns:
        The judgements, in the order of the questions.
    """
    judged: dict[int, Judged] = {}

    async def ask(item: tuple[int, Question]) -> Judged:
        question = item[1]
        exchange = await client.send(question.endpoint, question.body(model, **plan.extra))
        return judge(question, read(exchange), profiles=plan.profiles, expect_calls=plan.expect_calls)

    def take(item: tuple[int, Question], result: Judged) -> None:
        judged[item[0]] = result
        seen(result)

    await run_all(enumerate(plan.questions), ask, take, concurrency=plan.concurrency, stop=stop)
    return [judged[number] for number in sorted(judged)]
