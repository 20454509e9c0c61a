from datetime import UTC, datetime, timedelta

from gemmaserve_operator.api.conditions import MAX_MESSAGE_LENGTH, Condition, render_conditions

THEN = datetime(2026, 1, 1, tzinfo=UTC)
LATER = THEN + timedelta(hours=1)


def ready(status, reason="UpToDate", message="m"):
    return Condition("Ready", status, reason, message)


def test_transition_time_moves_only_with_the_status():
    first = render_conditions([ready("False")], [], 1, THEN)
    other_reason = render_conditions([ready("False", "CrashLoop", "words")], first, 2, LATER)
    other_status = render_conditions([ready("True")], other_reason, 3, LATER)
    assert first[0]["lastTransitionTime"] == "2026-01-01T00:00:00Z"
    assert other_reason[0] | {"reason": "UpToDate", "message": "m", "observedGeneration": 1} == first[0]
    assert other_reason[0]["observedGeneration"] == 2
    assert other_status[0]["lastTransitionTime"] == "2026-01-01T01:00:00Z"


def test_the_same_again_is_equal():
    first = render_conditions([ready("True")], [], 1, THEN)
    assert render_conditions([ready("True")], first, 1, LATER) == first


def test_broken_conditions_of_others_do_no_harm():
    assert render_conditions([ready("True")], [{"type": "Ready", "status": "True"}, {}], 1, THEN)


def test_a_long_message_keeps_its_start_and_its_end():
    message = render_conditions([ready("False", message="start" + "x" * 5000 + "the end")], [], 1, THEN)[0]["message"]
    assert len(message) == MAX_MESSAGE_LENGTH
    assert message.startswith("start")
    assert message.endswith("the end")
