"""What may leave together, and when an empty delta is due (contract rules 6 and 10)."""

from types import SimpleNamespace

import pytest

from gemmaserve_parser.adapters import answer
from gemmaserve_parser.core.events import Content, Reasoning, ToolCall

CALL = ToolCall("get_time", "{}")


def outbox(*events):
    made = answer.Outbox()
    made.extend(events)
    return made


def test_one_event_at_a_time():
    box = outbox(Content("a"), CALL, Content("b"))
    taken = [box.take_one() for _ in range(4)]
    assert taken == [[Content("a")], [CALL], [Content("b")], []]


def test_content_and_calls_do_not_leave_together():
    box = outbox(Reasoning("r"), Content("a"), CALL, CALL, Content("b"), Reasoning("s"))
    taken = [box.take_alike() for _ in range(4)]
    assert taken == [[Reasoning("r"), Content("a")], [CALL, CALL], [Content("b"), Reasoning("s")], []]


def test_a_thought_and_calls_may_leave_together():
    box = outbox(Reasoning("r"), CALL, Content("a"))
    assert [box.take_alike(), box.take_alike()] == [[Reasoning("r"), CALL], [Content("a")]]


def test_everything_at_once_keeps_the_order():
    box = outbox(Content("a"), CALL)
    assert box.take_all() == [Content("a"), CALL]
    assert len(box) == 0


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(answer.time, "monotonic", made)
    return made


@pytest.mark.parametrize(("setting", "seconds"), [(None, 10), ("3", 3)])
def test_a_heartbeat_is_due_after_silence_and_not_again_at_once(clock, monkeypatch, setting, seconds):
    monkeypatch.delenv(answer.HEARTBEAT_SECONDS, raising=False)
    if setting is not None:
        monkeypatch.setenv(answer.HEARTBEAT_SECONDS, setting)
    heartbeat = answer.Heartbeat()
    clock.now += seconds - 0.1
    assert not heartbeat.due()
    clock.now += 0.2
    assert heartbeat.due()
    heartbeat.sent()
    assert not heartbeat.due()


def test_what_was_sent_counts_as_a_sign_of_life(clock, monkeypatch):
    monkeypatch.setenv(answer.HEARTBEAT_SECONDS, "10")
    heartbeat = answer.Heartbeat()
    clock.now += 9
    heartbeat.sent()
    clock.now += 9
    assert not heartbeat.due()


def test_heartbeats_can_be_turned_off(clock, monkeypatch):
    monkeypatch.setenv(answer.HEARTBEAT_SECONDS, "0")
    heartbeat = answer.Heartbeat()
    clock.now += 1e6
    assert not heartbeat.due()


class NotGemma:
    def get_vocab(self):
        return {"<s>": 1}


def test_another_models_tokenizer_is_refused():
    with pytest.raises(RuntimeError, match=r"<\|tool_call>"):
        answer.marker_ids(NotGemma())


def test_ids_are_fresh():
    ids = {answer.new_call_id() for _ in range(1000)}
    assert len(ids) == 1000
    assert all(id_.startswith("chatcmpl-tool-") for id_ in ids)


@pytest.mark.parametrize("nested", [True, False])
def test_of_a_tool_its_name_and_parameters_are_read_without_copying_them(nested):
    parameters = {"type": "object"}
    function = SimpleNamespace(name="f", parameters=parameters, description="d")
    read = answer.as_dict(SimpleNamespace(function=function) if nested else function)
    assert read["name"] == "f"
    assert read["parameters"] is parameters


def test_a_tool_that_is_no_function_has_no_name():
    assert answer.as_dict(SimpleNamespace(type="web_search")) == {"name": None, "parameters": None}
