"""What the stand-in model says to each of toolstream's questions, in Gemma 4's markup or in JSON."""

from __future__ import annotations

import json
import re

from localcluster.tinymodel.checkpoint import FIRST_BYTE_ID, SPECIAL_TOKENS
from toolstream.core.scenarios import SCENARIOS

_MARKERS = re.compile("|".join(re.escape(each) for each in sorted(SPECIAL_TOKENS, key=len, reverse=True)))


def script():
    """Questions and answers as `scripted` reads them."""
    return [{name: to_ids(text) for name, text in _forms(each).items()} for each in SCENARIOS]


def _forms(scenario):
    calls = [{"name": each.name, "parameters": dict(each.arguments)} for each in scenario.expected]
    return {
        "question": scenario.prompt.strip(),
        "answer": said(scenario),
        "list": json.dumps(calls, ensure_ascii=False),
        "object": json.dumps(calls[0]["parameters"], ensure_ascii=False),
    }


def said(scenario):
    """The right answer to a scenario, as the model writes it."""
    calls = "".join(_call(each.name, each.arguments) for each in scenario.expected)
    return f"I read the plan first.{calls}Then I do what it says." if scenario.text_too else calls


def to_ids(text):
    """The stand-in tokenizer's ids: a marker is one token, everything else one token a byte."""
    ids, at = [], 0
    for marker in _MARKERS.finditer(text):
        ids += _bytes(text[at : marker.start()])
        ids.append(SPECIAL_TOKENS[marker.group()])
        at = marker.end()
    return ids + _bytes(text[at:])


def _bytes(text):
    return [FIRST_BYTE_ID + byte for byte in text.encode()]


def _call(name, arguments):
    body = ",".join(f'{key}:<|"|>{value}<|"|>' for key, value in arguments.items())
    return f"<|tool_call>call:{name}{{{body}}}<tool_call|>"
