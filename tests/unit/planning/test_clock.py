"""A wall clock that jumps in the middle of a rollout, and is put right later, changes nothing but how long it takes."""

from datetime import timedelta

import pytest

SECOND = {"engine": {"maxModelLen": 1}}
STEPS = 12
"""Looks at the cluster within which an undisturbed rollout is over."""
JUMPS = {"ahead": timedelta(minutes=20), "back": timedelta(hours=-2), "far back": timedelta(days=-400)}


def _step(cluster):
    cluster.controllers()
    cluster.reconcile()
    cluster.tick(10)


@pytest.fixture
def serving(make_cluster):
    cluster = make_cluster()
    cluster.settle()
    cluster.tick(60)
    return cluster.settle()


@pytest.mark.parametrize("at", range(STEPS))
@pytest.mark.parametrize("jump", JUMPS)
def test_a_jump_at_any_step(serving, jump, at):
    first = serving.selected
    serving.edit(**SECOND)
    for step in range(STEPS):
        if step == at:
            serving.now += JUMPS[jump]
        _step(serving)
        assert serving.selected is not None
        assert f"gemma4-{serving.selected}" in serving.names("Deployment")
    serving.now -= JUMPS[jump]
    for _ in range(STEPS):
        _step(serving)
    assert serving.selected != first
    assert serving.names("Deployment") == [f"gemma4-{serving.selected}"]
    assert serving.status["phase"] == "Serving"
    assert serving.plan().writes == ()


def test_a_clock_that_stays_behind_keeps_the_old_pods_no_longer_than_it_is_behind(serving):
    """Traffic moves all the same; only the old revision's leave is put off."""
    serving.edit(**SECOND)
    while serving.status["phase"] != "Serving" or len(serving.names("Deployment")) < 2:
        _step(serving)
    switched = serving.now
    serving.now -= timedelta(hours=1)
    for _ in range(STEPS):
        _step(serving)
    assert len(serving.names("Deployment")) == 2
    serving.now = switched + timedelta(minutes=1)
    for _ in range(STEPS):
        _step(serving)
    assert serving.names("Deployment") == [f"gemma4-{serving.selected}"]
