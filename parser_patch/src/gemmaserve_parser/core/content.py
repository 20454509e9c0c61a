"""Content: white space around markup, calls that lack their marker, and the remains of markers at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gemmaserve_parser.core.calls import header_opens
from gemmaserve_parser.core.markers import END, TURN_CLOSE, fragment_start

if TYPE_CHECKING:
    from gemmaserve_parser.core.calls import Tools

#: What checkpoints write for `<|tool_call>` when they drift; no token, so never told by an id.
DRIFTED_OPENER = "<|tool_call|>"

_ENDS = (str(TURN_CLOSE), str(END))
_WATCHED = frozenset(
    text[:length] for text in (DRIFTED_OPENER, *_ENDS) for length in range(1, len(text) + (text in _ENDS))
)
_PREFIX = "call:"

#: How much may be held to tell a bare call from text, in characters.
_LONGEST_LEAD = 512


class Opening(NamedTuple):
    """A call may start here although its marker is missing.

    Attributes:
        opener: What stood in its place, to be content again if it is no call: a drifted marker, or white space.
        rest: The text after it.
    """

    opener: str
    rest: str


class ContentReader:
    """Passes content on as soon as it can be nothing else.

    Args:
        tools: The declared tools: without its marker only a call of one of them is a call.
        calls: Whether calls are looked for at all.
    """

    def __init__(self, tools: Tools, *, calls: bool) -> None:
        self._tools = tools
        self._calls = calls and bool(tools)
        self._edge = True  # nothing but white space since the start or since markup
        self._after_markup = False
        self._lead = ""  # held at an edge
        self._fragment = ""  # held at the end of text
        self._said = ""  # the last piece of content
        self._gap = ""  # white space since then that only separated markup

    @property
    def holding(self) -> bool:
        """Whether text is held back."""
        return bool(self._lead)

    def flows(self, text: str) -> bool:
        """Whether this text is content as it is, by a test that costs next to nothing."""
        if not text or self._edge or self._fragment:
            return False
        if "<" in text and (DRIFTED_OPENER in text or fragment_start(text, _WATCHED) < len(text)):
            return False
        self._said, self._gap = text, ""
        return True

    def said(self, text: str) -> None:
        """Take note of content that was passed on without `read`."""
        if text:
            self._edge = False
            self._said, self._gap = text, ""

    def markup(self) -> None:
        """Take note that a call or a thought has ended here."""
        self._edge = self._after_markup = True

    def read(self, text: str) -> tuple[str, Opening | None]:
        """The content in this text, and the call that may follow it, which takes the rest."""
        opening = None
        if self._edge:
            text, opening = self._read_edge(text)
        if self._fragment:
            text, self._fragment = self._fragment + text, ""
        if "<" in text:
            start = text.find(DRIFTED_OPENER) if self._calls else -1
            if start >= 0:
                opening = Opening(DRIFTED_OPENER, text[start + len(DRIFTED_OPENER) :])
                text = text[:start]
            else:
                keep = fragment_start(text, _WATCHED)
                text, self._fragment = text[:keep], text[keep:]
        self.said(text)
        return text, opening

    def end(self, *, answer: bool = False) -> str:
        """The content that was held, now that markup or the end of the answer follows."""
        text = ""
        if self._lead.strip() or (answer and not self._after_markup):
            text = self._separated(self._lead)
        self._gap = self._gap or self._lead
        if not answer or not is_spoiled_marker(self._fragment):
            text += self._fragment
        self._lead = self._fragment = ""
        self.said(text)
        return text

    def _read_edge(self, text: str) -> tuple[str, Opening | None]:
        lead = self._lead + text
        start = lead.lstrip()
        self._lead = ""
        if len(lead) <= _LONGEST_LEAD:
            opens = self._opens(start)
            if opens:
                return "", Opening(self._separated(lead)[: -len(start)], start)
            if opens is None:
                self._lead = lead
                return "", None
        self._edge = False
        return self._separated(lead), None

    def _opens(self, start: str) -> bool | None:
        """Whether a bare call starts here; None while it may."""
        if not start:
            return None
        if not self._calls or not start.startswith(_PREFIX[: len(start)]):
            return False
        return header_opens(start, self._tools, declared_only=True) if len(start) > len(_PREFIX) else None

    def _separated(self, lead: str) -> str:
        """The text, with white space in front only where it keeps two pieces of content apart."""
        if not self._after_markup:
            return lead
        start = lead.lstrip()
        gap = self._gap or lead[: len(lead) - len(start)]
        return gap + start if self._said and not self._said[-1].isspace() else start


def is_spoiled_marker(text: str) -> bool:
    """Whether the last characters of an answer are markup, not text: an end marker, or most of an opener."""
    return text in _ENDS or len(text) * 2 > len(DRIFTED_OPENER)
