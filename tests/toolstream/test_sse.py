from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolstream.core.sse import Event, LineTooLong, SseDecoder

STREAM = (
    b": a comment\n\ndata: one\n\nevent: named\r\ndata: two\r\ndata:three\r\n\r\n"
    b"id: 7\rdata:  indented\r\rdata\n\ndata: \xf0\x9f\xa6\x8a \xff\n\n"
)
EVENTS = [
    Event("one", None),
    Event("two\nthree", "named"),
    Event(" indented", None),
    Event("", None),
    Event("\N{FOX FACE} \N{REPLACEMENT CHARACTER}", None),
]


@given(st.lists(st.integers(0, len(STREAM))))
def test_every_cutting_gives_the_same_events(cuts):
    places = [0, *sorted(cuts), len(STREAM)]
    decoder = SseDecoder()
    events = []
    for start, end in pairwise(places):
        events += decoder.feed(STREAM[start:end])
    assert events == EVENTS
    assert decoder.unfinished == ""


@given(st.binary())
def test_nothing_that_comes_raises(data):
    decoder = SseDecoder()
    for event in decoder.feed(data):
        assert isinstance(event.data, str)
    assert isinstance(decoder.unfinished, str)


def test_what_the_end_cut_off_is_kept():
    decoder = SseDecoder()
    assert decoder.feed(b'data: whole\n\ndata: {"ha') == [Event("whole", None)]
    assert decoder.unfinished == 'data: {"ha'


def test_an_event_without_its_blank_line_is_unfinished():
    decoder = SseDecoder()
    assert decoder.feed(b"data: whole line\n") == []
    assert decoder.unfinished == "whole line"


def test_a_line_over_the_limit_is_refused_in_any_cutting():
    decoder = SseDecoder(line_limit=100)
    for _ in range(100):
        decoder.feed(b"x")
    with pytest.raises(LineTooLong, match="100 bytes"):
        decoder.feed(b"x")


def test_a_line_up_to_the_limit_is_read():
    assert SseDecoder(line_limit=100).feed(b"data: " + b"x" * 94 + b"\n\n") == [Event("x" * 94, None)]


@pytest.mark.parametrize(
    ("data", "recognised"),
    [(b"", False), (b"\x00\xff\n<html>\n\n", False), (b'data: {"ha', True), (b": ping\n\n", True), (b"dat", False)],
)
def test_bytes_of_another_kind_are_told_from_events(data, recognised):
    decoder = SseDecoder()
    decoder.feed(data)
    assert decoder.recognised is recognised
