"""The grammar of a call's arguments: tokens to values whose quotedness is kept for the schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemmaserve_parser.core.jsontext import MAX_DEPTH
from gemmaserve_parser.core.lexer import BARE, OPENER_OF, PUNCTUATION, STRING, STRING_END, Token

if TYPE_CHECKING:
    from gemmaserve_parser.core.lexer import BodyLexer

#: In tokens: the separator is looked for no further.
_LONGEST_KEY = 16

_OPENERS = frozenset(OPENER_OF.values())


class MalformedError(ValueError):
    """The body is not a call's arguments."""


class Bare(str):
    """A value written without quotes, trimmed; a quoted one is plain `str`."""

    __slots__ = ()


class Object(dict[str, "Value"]):
    """A bare object; `span` is where it stands in the body."""

    __slots__ = ("span",)
    span: tuple[int, int]


class Array(list["Value"]):
    """A bare array; `span` is where it stands in the body."""

    __slots__ = ("span",)
    span: tuple[int, int]


Value = Bare | str | Object | Array


class ArgumentReader:
    """Reads the arguments that start at one token of a body.

    Every bracket is read once: what nests deeper than MAX_DEPTH is skipped to its end and stays text.

    Attributes:
        index: The first token that is not read.
        repaired: Whether a bracket was closed that the model had left open.
    """

    def __init__(self, lexer: BodyLexer, source: str, index: int) -> None:
        self.index = index
        self.repaired = False
        self._lexer = lexer
        self._source = source
        self._tokens = lexer.tokens
        self._open: list[str] = []

    def read(self) -> Object:
        """Read the shell, `{...}` or `(...)`, and what it holds.

        Raises:
            MalformedError: There is something in it that is no `key:value`.
        """
        return self._object()

    def _token(self, index: int) -> Token | None:
        return self._tokens[index] if index < len(self._tokens) else None

    def _peek(self) -> Token | None:
        return self._token(self.index)

    def _at(self, characters: str) -> bool:
        token = self._peek()
        return token is not None and token.kind == PUNCTUATION and token.value in characters

    def _object(self) -> Object:
        value = Object()
        start = self._enter()
        while not self._left():
            if self._at(","):
                self.index += 1
            elif self._at("{("):
                # Doubled braces, and one JSON object inside parentheses.
                if value or len(self._open) == MAX_DEPTH:
                    raise MalformedError
                value.update(self._object())
            else:
                key = self._key()
                value[key] = self._value(in_array=False)
        value.span = (start, self._leave())
        return value

    def _array(self) -> Array:
        value = Array()
        start = self._enter()
        while not self._left():
            if self._at(","):
                self.index += 1
            else:
                value.append(self._value(in_array=True))
        value.span = (start, self._leave())
        return value

    def _enter(self) -> int:
        opener = self._tokens[self.index]
        self._open.append(opener.value)
        self.index += 1
        return opener.start

    def _left(self) -> bool:
        """Whether the innermost bracket ends here, by its own closer, by one of an outer bracket, or with the body."""
        while (token := self._peek()) is not None and token.kind == PUNCTUATION and token.value in OPENER_OF:
            if self._encloses(token.value):
                return True
            self.index += 1
        return token is None

    def _encloses(self, closer: str) -> bool:
        """Whether this closer ends a bracket that is open; a shell may end with the other shell's (`f{a:1)`)."""
        if self._open[0] == "(" and closer == "}":
            return True
        if self._open == ["{"] and closer == ")":
            return self.index == len(self._tokens) - 1
        return OPENER_OF[closer] in self._open

    def _leave(self) -> int:
        opener = self._open.pop()
        token = self._peek()
        if token is not None and (OPENER_OF[token.value] == opener or (not self._open and token.value in "})")):
            self.index += 1
            return token.end
        self.repaired = True
        return token.start if token else len(self._source)

    def _key(self) -> str:
        first = self._tokens[self.index]
        separator = self._separator(self.index)
        if separator is None:
            raise MalformedError
        last = self._tokens[separator - 1]
        self.index = separator + 1
        if first.kind == STRING:
            return first.value
        end = last.start if last.kind == STRING_END else last.end
        return self._lexer.text_between(self._source, first.start, end).strip()

    def _separator(self, index: int) -> int | None:
        """Where the separator stands of the key that starts at token `index`; None when no key starts there.

        A bare key is words, brackets in pairs among them (`Send mail (draft)`, `rows[0]`).
        """
        first = self._token(index)
        if first is None or first.kind not in {STRING, BARE}:
            return None
        depth = 0
        for place in range(index + 1, min(index + _LONGEST_KEY, len(self._tokens))):
            token = self._tokens[place]
            if token.kind == PUNCTUATION and token.value in ":=" and depth == 0:
                return place
            if token.kind == PUNCTUATION:
                depth += (token.value in "([") - (token.value in ")]")
            if first.kind == STRING or depth < 0 or (token.kind == PUNCTUATION and token.value not in "()[]"):
                return None
        return None

    def _starts_pair(self, index: int) -> bool:
        """Whether the tokens from `index` on begin the next pair, or end the object."""
        token = self._token(index)
        if token is None:
            return True
        if token.kind == PUNCTUATION:
            return token.value in OPENER_OF or token.value == ","
        return self._separator(index) is not None

    def _ends_value(self, *, in_array: bool) -> bool:
        token = self._peek()
        if token is None:
            return True
        if token.kind == PUNCTUATION:
            return token.value == "," or (token.value in OPENER_OF and self._encloses(token.value))
        # A missing comma.
        return token.kind == STRING if in_array else self._starts_pair(self.index)

    def _value(self, *, in_array: bool) -> Value:
        token = self._peek()
        if token is None or (token.kind == PUNCTUATION and self._ends_value(in_array=in_array)):
            return Bare()
        begin = self.index
        value: Value | None = None
        if token.kind == STRING:
            value = token.value
            self.index += 1
        elif token.kind == PUNCTUATION and token.value in "{[":
            value = self._container(token)
        if value is not None and self._ends_value(in_array=in_array):
            return value
        self.index = begin
        return self._bare(token.start, in_array=in_array)

    def _container(self, opener: Token) -> Value | None:
        """Read a nested object or array; None when it is neither (`{x}`) and so is text."""
        if len(self._open) < MAX_DEPTH:
            depth, repaired = len(self._open), self.repaired
            try:
                return self._object() if opener.value == "{" else self._array()
            except MalformedError:
                del self._open[depth:]
                self.repaired = repaired
                return None
        depth = 0
        while (token := self._peek()) is not None:
            self.index += 1
            if token.kind == PUNCTUATION:
                depth += (token.value in _OPENERS) - (token.value in OPENER_OF)
            if depth == 0:
                return Bare(self._lexer.text_between(self._source, opener.start, token.end))
        self.repaired = True
        return Bare(self._lexer.text_between(self._source, opener.start, len(self._source)))

    def _bare(self, start: int, *, in_array: bool) -> Value:
        """Read text up to the next comma or closer that ends it, brackets of its own passed over."""
        nested: list[str] = []
        while (token := self._peek()) is not None:
            if token.kind == STRING_END:
                self.index += 1
                text = self._lexer.text_between(self._source, start, token.start).strip()
                return text[1:] if text[:1] in {'"', "'"} else text  # opened by an ordinary quote
            if token.kind == PUNCTUATION:
                if token.value in _OPENERS:
                    nested.append(token.value)
                elif nested and OPENER_OF.get(token.value) == nested[-1]:
                    nested.pop()
                elif self._ends_bare(token.value, nested=bool(nested), in_array=in_array):
                    break
            self.index += 1
        end = token.start if token else len(self._source)
        return Bare(self._lexer.text_between(self._source, start, end).strip())

    def _ends_bare(self, char: str, *, nested: bool, in_array: bool) -> bool:
        if char == ",":
            following = self._token(self.index + 1)
            goes_on = following is not None and following.kind == BARE and not self._starts_pair(self.index + 1)
            return not nested and (in_array or not goes_on)
        return char in OPENER_OF and self._encloses(char)
