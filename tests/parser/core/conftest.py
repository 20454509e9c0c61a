"""What the scanner's tests share."""

import json
from typing import NamedTuple

import pytest

from gemmaserve_parser.core.events import Content, Reasoning, ToolCall
from gemmaserve_parser.core.gemma4 import Gemma4Scanner


class Answer(NamedTuple):
    """What a client would see."""

    calls: list[tuple[str, dict]]
    content: str
    reasoning: str


def _answer(events) -> Answer:
    return Answer(
        [(event.name, json.loads(event.arguments)) for event in events if isinstance(event, ToolCall)],
        "".join(event.text for event in events if isinstance(event, Content)),
        "".join(event.text for event in events if isinstance(event, Reasoning)),
    )


@pytest.fixture(scope="session")
def scan():
    """Scan a text whose markers are told by their characters: whole, by five and by one, which must agree.

    `§` stands for the string delimiter.
    """

    def scan(text: str, tools=(), *, finish: str = "stop", **settings) -> Answer:
        text = text.replace("§", '<|"|>')
        answers = []
        for size in (len(text) or 1, 5, 1):
            scanner = Gemma4Scanner(tools, **settings)
            events = []
            for start in range(0, len(text), size):
                events += scanner.feed(text[start : start + size])
            answers.append(_answer(events + scanner.finish(finish)))
        assert answers[0] == answers[1] == answers[2]
        return answers[0]

    return scan


@pytest.fixture(scope="session")
def tool():
    """A declared tool from its name and the schemas of its parameters."""

    def tool(name: str, **properties):
        parameters = {"type": "object", "properties": properties}
        return {"type": "function", "function": {"name": name, "parameters": parameters}}

    return tool
