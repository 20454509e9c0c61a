"""Tokens of a call's body: which characters are structure, which are data inside a string.

The lexer runs only when a marker arrives, over what came since the last one, so a long argument costs an append a
delta and one pass in all. It must know at each marker whether a string is open, because inside a delimited string a
marker is data.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import NamedTuple

from gemmaserve_parser.core.escapes import unescape
from gemmaserve_parser.core.markers import CALL_CLOSE, DELIMITER, Marker

PUNCTUATION = "punctuation"  # one of { } [ ] ( ) , : =
BARE = "bare"  # a run of anything else, not stripped
STRING = "string"  # delimited or in ordinary quotes; the value is the string
STRING_END = "string end"  # a delimiter that closes a string whose opening delimiter is missing

OPENER_OF = {"}": "{", "]": "[", ")": "("}
_CLOSER_OF = {opener: closer for closer, opener in OPENER_OF.items()}

_STRUCTURE = re.compile(r"""[{}\[\](),:="'<]""")
_QUOTE_OR_ESCAPE = {'"': re.compile(r'["\\]'), "'": re.compile(r"['\\]")}
_KEY_AHEAD = re.compile(r"[\w.$-]{1,64}\s*[:=]")
_PAIR_AHEAD = re.compile(r"""\s*(?:[}\])"',]|[^{}"<]{1,128}?(?:[:=]|<\|"\|>\s*[:=]))""")
_SEPARATOR_AHEAD = re.compile(r"\s*[:=]")
#: So many small deltas are kept before they are joined: a string of four characters takes 53 bytes.
_PIECES_KEPT = 256

_NOT_SPACE = re.compile(r"\S")


class Token(NamedTuple):
    """A piece of a body; `start` and `end` are offsets into the whole body."""

    kind: str
    value: str
    start: int
    end: int


class _OpenString:
    """A delimited string whose end has not been found yet."""

    __slots__ = ("delimiters", "opener", "pieces")

    def __init__(self, opener: int) -> None:
        self.opener = opener  # index of its opening delimiter
        self.delimiters = 1  # how many came since, that one included
        self.pieces: list[str] = []


class BodyLexer:
    """Collects a call's body and cuts it into tokens."""

    def __init__(self) -> None:
        self.tokens: list[Token] = []
        #: An ordinary quote was opened and never closed: the body may have been cut inside a string.
        self.unclosed_quote = False
        self._parts: list[str] = []  # each a marker, or the text between two
        self._size = 0  # of the parts, in characters
        self._pieces: list[str] = []  # of the text since the last part, the latest of them
        self._joined: list[str] = []  # and those before, joined
        self._delimiters: list[int] = []  # offsets in the body
        self._delimiter_parts: list[int] = []  # the same delimiters as indices of _parts
        self._lexed = 0  # how many parts are cut
        self._next = 0  # the first delimiter that is not cut
        self._text = ""  # what is being cut, from offset _base of the body on
        self._base = 0
        self._bare = 0  # where the current bare run starts in _text
        self._solid = 0  # no character but white space stands in it before here
        self._odd = False  # within it, an odd number of delimiters stood for quotes
        self._open: _OpenString | None = None
        self._strict = False
        self._stack: list[str] = []
        self._depths = {"{": 0, "[": 0, "(": 0}
        self._at_key = False
        self._hopeless: set[str] = set()

    def append(self, text: str) -> None:
        """Take ordinary text."""
        pieces = self._pieces
        pieces.append(text)
        if len(pieces) == _PIECES_KEPT:
            self._joined.append("".join(pieces))
            pieces.clear()

    def _settle(self) -> None:
        """End the text since the last marker: it is a part."""
        if self._pieces or self._joined:
            text = "".join((*self._joined, *self._pieces))
            self._joined.clear()
            self._pieces.clear()
            self._parts.append(text)
            self._size += len(text)

    def append_marker(self, marker: Marker) -> None:
        """Take a real marker that is data."""
        self._settle()
        self._parts.append(marker)
        self._size += len(marker)

    def append_delimiter(self) -> None:
        """Take a real string delimiter."""
        self._settle()
        self._delimiters.append(self._size)
        self._delimiter_parts.append(len(self._parts))
        self.append_marker(DELIMITER)

    def source(self) -> str:
        """The whole body as written."""
        self._settle()
        return "".join(self._parts)

    def as_text(self) -> str:
        """The body as content: delimiters written as ordinary quotes, other real markers left out."""
        self._settle()
        return "".join(
            '"' if part is DELIMITER else part
            for part in self._parts
            if part is DELIMITER or not isinstance(part, Marker)
        )

    def text_between(self, source: str, start: int, end: int) -> str:
        """A part of `source()` as text, its real delimiters written as ordinary quotes."""
        pieces: list[str] = []
        for offset in self._delimiters[bisect_left(self._delimiters, start) : bisect_left(self._delimiters, end)]:
            pieces.append(source[start:offset])
            start = offset + len(DELIMITER)
        pieces.append(source[start:end])
        return '"'.join(pieces)

    def without_unclosed(self) -> tuple[BodyLexer, list[str]] | None:
        """Mend a body whose last string was never closed, although the call was.

        Returns:
            The body up to a close marker within that string, the string ended before the brackets in front of the
            marker, and the parts after the marker; None when there is no such marker.
        """
        if self._open is None:
            return None
        self._settle()
        first = self._delimiter_parts[self._open.opener]
        closers = "".join(_CLOSER_OF[opener] for opener in reversed(self._stack))
        for index in range(first + 1, len(self._parts)):
            if self._parts[index] is not CALL_CLOSE:
                continue
            text = "".join(self._parts[first + 1 : index])
            value = _without_end(text, closers)
            if value is None:
                return None
            mended = BodyLexer()
            for part in self._parts[:first]:
                if part is DELIMITER:
                    mended.append_delimiter()
                elif isinstance(part, Marker):
                    mended.append_marker(part)
                else:
                    mended.append(part)
            mended.append_delimiter()
            mended.append(value)
            mended.append_delimiter()
            mended.append(closers)
            return mended, self._parts[index + 1 :]
        return None

    def outside_strings(self) -> bool:
        """Cut what has come; whether the marker that follows stands outside every delimited string."""
        if self._open is not None and self._next == len(self._delimiters):
            return False
        self._take(self._lexed)
        return self._cut(0)

    def _take(self, first_part: int) -> None:
        self._settle()
        self._text = "".join(self._parts[first_part:])
        self._base = self._size - len(self._text)
        self._lexed = len(self._parts)
        self._bare = self._solid = 0

    def _cut(self, position: int) -> bool:
        while position >= 0:
            if self._open is not None:
                position = self._read_delimited(self._open, position)
                continue
            match = _STRUCTURE.search(self._text, position)
            if match is None:
                self._end_bare(len(self._text))
                return True
            position = self._step(match.group(), match.start())
        return False

    def _step(self, char: str, at: int) -> int:
        """Read what starts with this structural character; the position after it."""
        if char == "<":
            return self._read_delimiter(at) if self._is_delimiter(at) else at + 1
        if char in "\"'":
            if char in self._hopeless or not self._blank_before(at):
                return at + 1
            return self._read_quoted(char, at)
        self._end_bare(at)
        self._add(PUNCTUATION, char, at, at + 1)
        self._track(char)
        return at + 1

    def _track(self, char: str) -> None:
        if char in self._depths:
            self._stack.append(char)
            self._depths[char] += 1
            self._at_key = char != "["
        elif char == ",":
            self._at_key = bool(self._stack) and self._stack[-1] != "["
        else:
            self._at_key = False
            opener = OPENER_OF.get(char)
            if opener and self._depths[opener]:
                while (top := self._stack.pop()) != opener:
                    self._depths[top] -= 1
                self._depths[opener] -= 1

    def _read_delimiter(self, at: int) -> int:
        """A delimiter outside strings opens one, closes one that was never opened, or stands for a quote."""
        after = at + len(DELIMITER)
        if self._blank_before(at):
            self._open = _OpenString(self._next)
            self._next += 1
            return after
        if not self._odd and self._closes(after):
            self._end_bare(at)
            self._add(STRING_END, DELIMITER, at, after)
        else:
            self._odd = not self._odd
        self._next += 1
        return after

    def _read_delimited(self, string: _OpenString, position: int) -> int:
        """Read a delimited string to its end; the position after it, negative when it is still open."""
        while self._next < len(self._delimiters):
            end = self._delimiters[self._next] - self._base
            string.pieces.append(self._text[position:end])
            position = end + len(DELIMITER)
            string.delimiters += 1
            self._next += 1
            if self._strict or self._closes(position):
                self._open = None
                start = self._delimiters[string.opener] - self._base
                self._add(STRING, "".join(string.pieces), start, position)
                return position
            string.pieces.append('"')
        string.pieces.append(self._text[position:])
        if string.delimiters % 2:
            return -1
        # Taken by pairs the marker stands outside, so what looked like quoted quotes was a careless separator.
        self._strict = True
        self._open = None
        self._next = string.opener
        self._take(self._delimiter_parts[string.opener])
        return 0

    def _read_quoted(self, quote: str, at: int) -> int:
        """Read a string in ordinary quotes; without an end the quote is a character of a bare value."""
        position = at + 1
        while match := _QUOTE_OR_ESCAPE[quote].search(self._text, position):
            position = match.end()
            if match.group() == "\\":
                position += 1
            elif self._closes(position):
                self._add(STRING, unescape(self._text[at + 1 : match.start()]), at, position)
                self._next = bisect_left(self._delimiters, self._base + position, self._next)
                return position
        self._hopeless.add(quote)
        self.unclosed_quote = True
        return at + 1

    def _closes(self, position: int) -> bool:
        """Whether a quote that ends at `position` ends its string, by what follows; anything else is data."""
        match = _NOT_SPACE.search(self._text, position)
        if match is None:
            return True
        char = match.group()
        if char == ",":
            return not self._stack or self._stack[-1] == "[" or self._pair_follows(match.end())
        if char in OPENER_OF:
            return self._depths[OPENER_OF[char]] > 0
        if char in ":=":
            return self._at_key
        if self._stack and self._stack[-1] == "[":
            return self._is_delimiter(match.start())
        return bool(self._stack) and _KEY_AHEAD.match(self._text, match.start()) is not None

    def _pair_follows(self, position: int) -> bool:
        """Whether what stands after a comma in an object can go on like one."""
        if _PAIR_AHEAD.match(self._text, position):
            return True
        match = _NOT_SPACE.search(self._text, position)
        if match is None or not self._is_delimiter(match.start()):
            return match is None
        index = bisect_left(self._delimiters, self._base + match.end(), self._next)
        end = self._delimiters[index] - self._base + len(DELIMITER) if index < len(self._delimiters) else position
        return _SEPARATOR_AHEAD.match(self._text, end) is not None

    def _is_delimiter(self, at: int) -> bool:
        offset = self._base + at
        index = bisect_left(self._delimiters, offset, self._next)
        return index < len(self._delimiters) and self._delimiters[index] == offset

    def _blank_before(self, at: int) -> bool:
        match = _NOT_SPACE.search(self._text, self._solid, at)
        self._solid = match.start() if match else at
        return match is None

    def _end_bare(self, end: int) -> None:
        if not self._blank_before(end):
            self._add(BARE, self._text[self._bare : end], self._bare, end)
        self._bare = self._solid = end

    def _add(self, kind: str, value: str, start: int, end: int) -> None:
        self.tokens.append(Token(kind, value, self._base + start, self._base + end))
        self._bare = self._solid = end
        self._odd = False


def _without_end(text: str, closers: str) -> str | None:
    """`text` without the brackets, innermost first, that it ends with; None when it ends otherwise."""
    for closer in reversed(closers):
        text = text.rstrip()
        if not text.endswith(closer):
            return None
        text = text[:-1]
    return text
