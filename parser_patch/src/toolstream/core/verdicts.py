"""Answers judged by the rules, and what that makes of a server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from toolstream.core.printable import printable
from toolstream.core.rules import MUST, PROFILES, RULES, Finding, Profile, Rule, Severity

if TYPE_CHECKING:
    from toolstream.core.exchange import Answer, Exchange
    from toolstream.core.scenarios import Question

Outcome = Literal["passed", "failed", "inconclusive"]

PASSED: Outcome = "passed"
FAILED: Outcome = "failed"
INCONCLUSIVE: Outcome = "inconclusive"

_ABSENT = {404, 405, 501}
_BAD_REQUEST = 400
_NO_ROOM = ("maximum context length", "context_length_exceeded")
"""vLLM's words and OpenAI's code for a request that the model's context does not hold."""
CALL_EXPECTED = "call-expected"


class Breach(NamedTuple):
    """A finding with its place.

    Attributes:
        question: Name of the question.
        detail: What is wrong.
        chunk: Number of the chunk; None for the end.
        quote: The chunk, shortened.
    """

    question: str
    detail: str
    chunk: int | None
    quote: str


@dataclass(frozen=True)
class Verdict:
    """One rule on one answer."""

    rule: Rule
    outcome: Outcome
    breaches: Sequence[Breach] = ()


@dataclass
class Judged:
    """One question with every verdict on its answer.

    Attributes:
        question: What was asked.
        verdicts: One a rule that applies.
        note: Why nothing could be said, where nothing could.
        seconds: How long the answer took.
    """

    question: Question
    verdicts: list[Verdict]
    note: str = ""
    seconds: float = 0.0

    @property
    def outcome(self) -> Outcome:
        """Failed when a must rule failed; inconclusive when the server could not be asked or gave no call to judge."""
        musts = [verdict for verdict in self.verdicts if verdict.rule.severity == MUST]
        if any(verdict.outcome == FAILED for verdict in musts):
            return FAILED
        if self.note or any(verdict.outcome == INCONCLUSIVE for verdict in musts):
            return INCONCLUSIVE
        return PASSED


def judge(
    question: Question, answer: Answer, *, profiles: Sequence[Profile] = PROFILES, expect_calls: bool = False
) -> Judged:
    """Judge one answer.

    A model may answer without calling: then the rules that need a call are inconclusive, unless calls are expected.

    Args:
        question: What was asked.
        answer: What came.
        profiles: Only rules that matter to these clients.
        expect_calls: An answer without calls, where tool_choice allows them, is a breach of `call-expected`.
    """
    if note := _unasked(question, answer.exchange):
        return Judged(question, [], note, answer.exchange.seconds)
    rules = [rule for rule in RULES if rule.applies(question) and not rule.breaks.keys().isdisjoint(profiles)]
    if expect_calls and question.calls_are_due:
        rules.append(_CALL_EXPECTED)
    verdicts = [_verdict(rule, question, answer) for rule in rules]
    note = "" if answer.calls or not question.calls_are_due else "the model called no tool"
    return Judged(question, verdicts, note, answer.exchange.seconds)


def _unasked(question: Question, exchange: Exchange) -> str:
    """Why the question was never put to the model, where it was not; how the server streams cannot be told then."""
    if exchange.status in _ABSENT:
        return f"the server has no {question.endpoint} endpoint (HTTP {exchange.status})"
    if exchange.status == _BAD_REQUEST and any(words in chunk.text for chunk in exchange.chunks for words in _NO_ROOM):
        return "the model's context is too short for the question (HTTP 400)"
    return ""


def _verdict(rule: Rule, question: Question, answer: Answer) -> Verdict:
    if rule.needs_call and not answer.calls:
        # A rule about calls holds where no call is due and none came.
        return Verdict(rule, INCONCLUSIVE if question.calls_are_due else PASSED)
    breaches = [
        Breach(
            question.name,
            printable(finding.detail),
            finding.chunk,
            printable(answer.exchange.quote(finding.chunk)),
        )
        for finding in rule.check(answer, question)
    ]
    return Verdict(rule, FAILED if breaches else PASSED, breaches)


def _no_calls(answer: Answer, _question: Question) -> list[Finding]:
    return [] if answer.calls else [Finding("no tool call")]


_CALL_EXPECTED = Rule(
    CALL_EXPECTED,
    MUST,
    dict.fromkeys(PROFILES, "the agent asked for a tool call and got none"),
    _no_calls,
    "asked for on the command line",
    needs_call=False,
)


@dataclass
class RuleTally:
    """One rule over all answers."""

    rule: Rule
    passed: int = 0
    failed: int = 0
    inconclusive: int = 0
    breaches: list[Breach] = field(default_factory=list)

    @property
    def outcome(self) -> Outcome:
        """Failed where it failed once; passed where it held at least once."""
        if self.failed:
            return FAILED
        return PASSED if self.passed else INCONCLUSIVE

    @property
    def severity(self) -> Severity:
        """The rule's."""
        return self.rule.severity


def tally(judged: Sequence[Judged]) -> list[RuleTally]:
    """The verdicts by rule, in the order of the rules."""
    tallies: dict[str, RuleTally] = {}
    for each in judged:
        for verdict in each.verdicts:
            row = tallies.setdefault(verdict.rule.name, RuleTally(verdict.rule))
            setattr(row, verdict.outcome, getattr(row, verdict.outcome) + 1)
            row.breaches.extend(verdict.breaches)
    order = [rule.name for rule in (*RULES, _CALL_EXPECTED)]
    return sorted(tallies.values(), key=lambda row: order.index(row.rule.name))


def fails(judged: Sequence[Judged]) -> bool:
    """Whether a must rule failed."""
    return any(each.outcome == FAILED for each in judged)
