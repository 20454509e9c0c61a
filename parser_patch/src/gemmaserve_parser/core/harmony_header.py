"""A Harmony message's header: who speaks, to whom, on which channel, as models really write it.

The format has `<|start|>ROLE[ to=RECIPIENT]<|channel|>CHANNEL[ to=RECIPIENT][ <|constrain|>TYPE]<|message|>`.
Checkpoints repeat parts, put stray tokens in, glue a marker's word to a name, or leave `<|message|>` out, so the header
is searched for what it must hold instead of being parsed in order.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from gemmaserve_parser.core.events import Content, Reasoning

if TYPE_CHECKING:
    from gemmaserve_parser.core.calls import Tools

#: A header that is longer, in characters, is none: the model forgot its markup and writes text. Names may have 64
#: characters, repeated once or twice, beside at most a few words.
LONGEST_HEADER = 512

_RECIPIENT = re.compile(r"to\s*=\s*(?P<to>[^\s{}]*)|(?<!\w)(?P<bare>functions\.[^\s{}]+)")
_ADDRESSED = re.compile(r"\s*to\s*=")
_CHANNEL = re.compile(r"analysis|commentary|final")
_FORMAT = re.compile(r"\s*(?:json|code)\b")
_ONE_WORD = re.compile(r"\W*\w*\W*")
_NAME = re.compile(r"[\w./:-]*")
_FUNCTIONS = re.compile(r"(?:functions[./:])+")
_POLLUTION = re.compile(r"(?P<name>.+?)(?:\W*(?:analysis|assistant|code|commentary|constrain|final|json))+")

_SPEAKER = re.compile(r"\s*assistant(?![a-z])")
_OTHER_SPEAKER = re.compile(r"\s*(?:developer|system|tool|user)\b")
_MODEL = "assistant"
_AUDIENCE = frozenset({"all", "user"})

#: Harmony's own tools; what they are sent is between the model and the server, and no call of the client's.
_BUILT_IN = frozenset({"browser", "container", "python"})


class Message(NamedTuple):
    """What a header announces: a call, text, or, with neither, a body that is for nobody here.

    Attributes:
        call: The name of the tool that is called; empty: it is no call.
        declared: Whether the request declared that tool.
        text: What the body is when it is no call.
        channel: As the header names it; empty: not at all.
        recipient: As the header names it, of a message that is neither call nor text.
        foreign: Somebody else's message, a tool's result or a user's turn, that the model made up.
    """

    call: str = ""
    declared: bool = False
    text: type[Content | Reasoning] | None = None
    channel: str = ""
    recipient: str = ""
    foreign: bool = False


class Header:
    """Collects one header, from `<|start|>` or the end of the message before it, up to `<|message|>`.

    Args:
        started: Whether `<|start|>` opened it. The first of an answer was opened by the prompt.

    Attributes:
        size: Characters of ordinary text so far.
        marked: Whether `<|channel|>` or `<|constrain|>` was seen: without one it may be no header at all.
    """

    def __init__(self, *, started: bool = False) -> None:
        self.size = 0
        self.marked = False
        self._started = started
        self._parts: list[list[str]] = [[]]  # split at the markers; the first holds the speaker

    def append(self, text: str) -> None:
        """Take ordinary text."""
        self._parts[-1].append(text)
        self.size += len(text)

    def mark(self) -> str:
        """Take `<|channel|>` or `<|constrain|>`.

        Returns:
            Text before it that is no part of the header: the model began to answer without markup.
        """
        prose = self.prose()
        if self._started or _CHANNEL.match(prose.lstrip()):
            prose = ""
        if prose:
            self._parts = [[]]
        self.marked = True
        self._parts.append([])
        return prose

    def prose(self, *, truncated: bool = False) -> str:
        """The text, when it is no part of a header: an answer that was written without markup; else empty.

        Args:
            truncated: Whether the answer was cut here, so that it may be the start of a header.
        """
        text = self._texts()[0]
        if self.marked or (self._started and (truncated or _OTHER_SPEAKER.match(text))):
            return ""
        speaker = _SPEAKER.match(text)
        rest = text[speaker.end() :] if speaker else text
        start = rest.strip()
        if not re.search(r"\w", start) or _ADDRESSED.match(rest) or _CHANNEL.fullmatch(start):
            return ""
        begun = _MODEL.startswith(start) or start == "to"
        return "" if begun and (truncated or self._started) else rest

    def read(self, tools: Tools) -> Message:
        """What the header announces; whatever it holds, there is an answer."""
        texts = self._texts()
        recipients = [match["to"] or match["bare"] or "" for match in _RECIPIENT.finditer(" ".join(texts))]
        if _MODEL in recipients or (self._started and _OTHER_SPEAKER.match(texts[0])):
            return Message(foreign=True)
        channel = self._channel(texts)
        names = [name for name in (_function(recipient, tools) for recipient in recipients) if name]
        if names:
            name = next((name for name in names if tools.resolve(name) == name), names[0])
            return Message(call=name, declared=tools.resolve(name) is not None, channel=channel)
        others = [recipient for recipient in recipients if recipient not in _AUDIENCE]
        if others and channel != "final":
            return Message(channel=channel, recipient=others[0])
        return Message(text=Reasoning if channel == "analysis" else Content, channel=channel)

    def body(self, message: Message) -> str:
        """The body that began in the header itself, because `<|message|>` was left out; empty when there is none."""
        texts = self._texts()
        if message.call:
            _, brace, rest = " ".join(texts).partition("{")
            return brace + rest
        if message.text is None or not self.marked:
            return ""
        channel = _CHANNEL.search(texts[-1])
        text = _RECIPIENT.sub("", texts[-1][channel.end() :] if channel else texts[-1])
        if not channel and _ONE_WORD.fullmatch(text):
            return ""
        form = _FORMAT.match(text)
        return (text[form.end() :] if form else text).lstrip()

    def _texts(self) -> list[str]:
        return ["".join(part) for part in self._parts]

    @staticmethod
    def _channel(texts: list[str]) -> str:
        """The last channel that is named, behind a marker if anywhere: the one nearest to the body."""
        for text in (*reversed(texts[1:]), texts[0]):
            found = _CHANNEL.findall(_RECIPIENT.sub(" ", text))
            if found:
                return str(found[-1])
        return ""


def _function(recipient: str, tools: Tools) -> str:
    """The tool that a recipient names: a declared one, or any in `functions`; empty when it is no tool's name."""
    match = _NAME.match(recipient)
    written = match.group().rstrip("./:-") if match else ""
    if written and tools.resolve(written) == written:
        return written
    prefix = _FUNCTIONS.match(written)
    if prefix is None and written.partition(".")[0] in _BUILT_IN:
        return ""
    name = written[prefix.end() :] if prefix else written
    polluted = _POLLUTION.fullmatch(name)
    declared = tools.resolve(name) or (tools.resolve(polluted["name"]) if polluted else None)
    return declared or (name if prefix else "")
