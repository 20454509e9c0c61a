"""Gemma 4's special tokens, and telling a real one from the same characters typed as ordinary text."""

from __future__ import annotations

import re
from collections import Counter, deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence


class Marker(str):
    """A special token in a stream of pieces; ordinary text is plain `str`."""

    __slots__ = ()


CALL_OPEN = Marker("<|tool_call>")
CALL_CLOSE = Marker("<tool_call|>")
DELIMITER = Marker('<|"|>')
CHANNEL_OPEN = Marker("<|channel>")
CHANNEL_CLOSE = Marker("<channel|>")
RESPONSE_OPEN = Marker("<|tool_response>")
TURN_OPEN = Marker("<|turn>")
TURN_CLOSE = Marker("<turn|>")
END = Marker("<eos>")

#: Every special token of Gemma 4 that may stand in an answer. An adapter looks their ids up in the tokenizer
#: and passes those it finds as `marker_ids`.
MARKERS = (
    CALL_OPEN,
    CALL_CLOSE,
    DELIMITER,
    CHANNEL_OPEN,
    CHANNEL_CLOSE,
    RESPONSE_OPEN,
    Marker("<tool_response|>"),
    TURN_OPEN,
    TURN_CLOSE,
    Marker("<|think|>"),
    Marker("<|tool>"),
    Marker("<tool|>"),
    Marker("<bos>"),
    END,
    Marker("<pad>"),
)

_BY_TEXT = {str(marker): marker for marker in MARKERS}
_ANY = re.compile("|".join(re.escape(marker) for marker in MARKERS))
_PREFIXES = frozenset(marker[:length] for marker in MARKERS for length in range(1, len(marker)))


def fragment_start(text: str, prefixes: frozenset[str] = _PREFIXES) -> int:
    """Where a possibly unfinished marker starts at the end of `text`; its length when there is none."""
    start = text.rfind("<")
    return start if start >= 0 and text[start:] in prefixes else len(text)


class MarkerReader:
    """Splits deltas into ordinary text and real markers.

    Ids decide what is real: each real marker's id is queued when it comes and taken from the queue when its
    characters do, because text may lag behind the ids. Without ids the characters decide.

    Args:
        marker_ids: Token ids by marker text; empty: ids are never looked at.
        decode: The text of one id; see `Gemma4Scanner`.
        in_text: Whether markers are spelled out in the text at all.
    """

    def __init__(
        self, marker_ids: Mapping[str, int] | None, decode: Callable[[int], str] | None, *, in_text: bool = True
    ) -> None:
        self._by_id = {id_: _BY_TEXT[text] for text, id_ in (marker_ids or {}).items() if text in _BY_TEXT}
        self._lacks_markers = frozenset(self._by_id).isdisjoint
        self._decode = decode
        self._in_text = in_text
        #: What the text still owes, look-alikes too.
        self._awaited: deque[tuple[str, bool]] = deque()
        self._ordinary = ""  # the start of a look-alike whose text is late
        self._held = ""

    def is_plain(self, text: str, token_ids: Sequence[int] | None) -> bool:
        """Whether the delta is one piece of ordinary text, by a test that costs next to nothing."""
        if self._held or self._awaited:
            return False
        return self._lacks_markers(token_ids) if token_ids and self._by_id else "<" not in text

    def read(self, text: str, token_ids: Sequence[int] | None) -> Sequence[str]:
        """The delta's pieces, in order; the start of an unfinished marker is held for the next delta."""
        by_id = self._by_id
        if self.is_plain(text, token_ids):
            return (text,) if text else ()
        if not by_id or not (token_ids or self._awaited):
            return self._split(text, None, ())
        if token_ids and len(token_ids) == 1 and not (self._held or self._awaited):
            marker = by_id[token_ids[0]]
            if text == marker:
                return (marker,)
        if not self._in_text:
            return self._place(text, token_ids or ())
        return self._split(text, [by_id[id_] for id_ in token_ids or () if id_ in by_id], token_ids or ())

    def flush(self) -> str:
        """What was held, at the end of the answer. A fragment of a marker whose id came is no text."""
        held = "" if self._awaited else self._held
        self._held = ""
        return held

    def _split(self, text: str, found: list[Marker] | None, token_ids: Sequence[int]) -> list[str]:
        window = self._held + text
        matches = list(_ANY.finditer(window))
        behind = fragment_start(window) < len(window)
        real = self._real(matches, found, token_ids, behind=behind)
        pieces: list[str] = []
        position = 0
        for match, is_real in zip(matches, real, strict=True):
            if not is_real:
                continue
            if match.start() > position:
                pieces.append(window[position : match.start()])
            pieces.append(_BY_TEXT[match.group()])
            position = match.end()
        keep = len(window)
        if found is None or self._awaited:
            keep = max(position, fragment_start(window))
        self._held = window[keep:]
        if keep > position:
            pieces.append(window[position:keep])
        return pieces

    def _real(
        self, matches: list[re.Match[str]], found: list[Marker] | None, token_ids: Sequence[int], *, behind: bool
    ) -> list[bool]:
        """Which matches are real; `behind` says that the text may lack the end of its last marker."""
        if found is None:
            return [True] * len(matches)
        typed = [match.group() for match in matches]
        late = bool(self._awaited)
        expected = [*self._awaited]
        if self._decode is not None and (late or behind or typed != found):
            expected.extend(self._spelled(token_ids))
        else:
            expected.extend((marker, True) for marker in found)
        real: list[bool] = []
        left = Counter(text for text, _ in expected)
        taken = 0
        for text in typed:
            is_real = False
            # A look-alike that began in an earlier delta has no counterpart here: look ahead only when there is one.
            found_it = not left[text]
            while not found_it:
                ahead, is_real = expected[taken]
                found_it = ahead == text
                left[ahead] -= 1
                taken += 1
            real.append(is_real)
        self._awaited = deque(expected[taken:])
        if not self._awaited:
            self._ordinary = ""
        return real

    def _spelled(self, token_ids: Sequence[int]) -> Iterator[tuple[str, bool]]:
        """The markers and look-alikes that these ids spell, in order, and which of them are real."""
        run = [self._ordinary]
        for id_ in token_ids:
            marker = self._by_id.get(id_)
            if marker is None:
                run.append(self._text_of(id_))
                continue
            yield from ((match.group(), False) for match in _ANY.finditer("".join(run)))
            run.clear()
            yield marker, True
        text = "".join(run)
        yield from ((match.group(), False) for match in _ANY.finditer(text))
        self._ordinary = text[fragment_start(text) :]

    def _place(self, text: str, token_ids: Sequence[int]) -> list[str]:
        """Put markers, which the text lacks, where their ids stand among the others."""
        pieces: list[str] = []
        position = length = 0
        for id_ in token_ids:
            marker = self._by_id.get(id_)
            if marker is None:
                length += len(self._text_of(id_))
                continue
            if text[position:length]:
                pieces.append(text[position:length])
                position = min(length, len(text))
            pieces.append(marker)
        if text[position:]:
            pieces.append(text[position:])
        return pieces

    def _text_of(self, id_: int) -> str:
        return self._decode(id_) if self._decode is not None else ""
