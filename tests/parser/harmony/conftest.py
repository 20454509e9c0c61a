"""What the Harmony tests share: scanning in several cuttings that must agree, and real tokens of gpt-oss."""

import json
from typing import NamedTuple

import pytest

from gemmaserve_parser.core.events import Content, Reasoning, ToolCall
from gemmaserve_parser.core.harmony import HarmonyScanner

TOOLS = [{"type": "function", "function": {"name": name}} for name in ("get_weather", "query", "ping", "final_report")]


class Answer(NamedTuple):
    """What a client would see."""

    calls: list[tuple[str, dict]]
    content: str = ""
    reasoning: str = ""


def answer_of(events) -> Answer:
    return Answer(
        [(event.name, json.loads(event.arguments)) for event in events if isinstance(event, ToolCall)],
        "".join(event.text for event in events if isinstance(event, Content)),
        "".join(event.text for event in events if isinstance(event, Reasoning)),
    )


@pytest.fixture(scope="session")
def scan():
    """Scan a text whose markers are told by their characters: whole, by five and by one, which must agree."""

    def scan(text: str, *, finish: str = "stop", tools=TOOLS, **settings) -> Answer:
        answers = []
        for size in (len(text) or 1, 5, 1):
            scanner = HarmonyScanner(tools, **settings)
            events = []
            for start in range(0, len(text), size):
                events += scanner.feed(text[start : start + size])
            answers.append(answer_of(events + scanner.finish(finish)))
        assert answers[0] == answers[1] == answers[2]
        return answers[0]

    return scan
