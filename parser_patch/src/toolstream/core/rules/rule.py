"""What a rule is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from toolstream.core.exchange import CHAT, MESSAGES, RESPONSES, Answer, Endpoint

if TYPE_CHECKING:
    from toolstream.core.scenarios import Question

Severity = Literal["must", "should"]
Profile = Literal["openai", "ai-sdk-0.2", "ai-sdk-2", "opencode", "litellm", "anthropic"]

MUST: Severity = "must"
SHOULD: Severity = "should"

OPENAI: Profile = "openai"
AI_SDK_02: Profile = "ai-sdk-0.2"
AI_SDK_2: Profile = "ai-sdk-2"
OPENCODE: Profile = "opencode"
LITELLM: Profile = "litellm"
ANTHROPIC: Profile = "anthropic"
PROFILES = (OPENAI, AI_SDK_02, AI_SDK_2, OPENCODE, LITELLM, ANTHROPIC)

ALL_ENDPOINTS = (CHAT, RESPONSES, MESSAGES)


class Finding(NamedTuple):
    """One breach.

    Attributes:
        detail: What is wrong, in words.
        chunk: Number of the offending chunk; None for the end of the stream.
    """

    detail: str
    chunk: int | None = None


Check = Callable[[Answer, "Question"], Iterable[Finding]]


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        name: Stable; reports and conditions name it.
        severity: A `must` that fails fails the check.
        breaks: What breaks, by client profile.
        check: The breaches of an answer.
        endpoints: Where it applies.
        streaming: Whether it applies to streams only.
        needs_call: Whether an answer without calls says nothing about it.
        source: Where the rule comes from.
    """

    name: str
    severity: Severity
    breaks: Mapping[Profile, str]
    check: Check
    source: str
    endpoints: tuple[Endpoint, ...] = ALL_ENDPOINTS
    streaming: bool = False
    needs_call: bool = True
    when: Callable[[Question], bool] | None = None

    def applies(self, question: Question) -> bool:
        """Whether the rule has anything to say of an answer to this question."""
        return (
            question.endpoint in self.endpoints
            and (question.streaming or not self.streaming)
            and (self.when is None or self.when(question))
        )


def everyone(sentence: str) -> dict[Profile, str]:
    """The same breakage for every profile."""
    return dict.fromkeys(PROFILES, sentence)
