"""Whatever order watches, lists and answers arrive in, the store holds the newest and no ghosts."""

import itertools
import json

import pytest

from gemmaserve_operator.cluster.kinds import DEPLOYMENT, GEMMASERVE, JOB, POD, SERVICE, WATCHED
from gemmaserve_operator.cluster.store import Store

from .fake_client import child, gemmaserve

KEY = ("team", "gemma4")


def at(version, obj, uid="u1"):
    return obj | {"metadata": obj["metadata"] | {"resourceVersion": str(version), "uid": uid}}


@pytest.fixture
def store():
    store = Store()
    store.put(GEMMASERVE, at(10, gemmaserve(), "owner"))
    return store


def test_older_never_replaces_newer(store):
    assert store.put(JOB, at(12, child(note="new")))
    assert not store.put(JOB, at(11, child(note="old")))
    assert not store.put(JOB, at(12, child(note="same")))
    assert store.get(JOB, "team", "gemma4-x-gate")["metadata"]["note"] == "new"


def test_strings_that_recur_are_held_once(store):
    """A thousand resources have ten thousand objects, whose keys, labels and images are mostly the same."""
    for name in ("a", "b"):
        text = json.dumps(at(12, child(name=name, labels={"app": "gemma4"}), name))
        store.put(JOB, json.loads(text))
    first, second = (store.get(JOB, "team", name)["metadata"] for name in ("a", "b"))
    keys = [next(key for key in metadata if key == "labels") for metadata in (first, second)]
    assert keys[0] is keys[1]
    assert first["labels"]["app"] is second["labels"]["app"]


def test_versions_are_numbers(store):
    store.put(JOB, at(9, child()))
    assert store.put(JOB, at(10, child()))


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_any_order_of_events_ends_in_the_same_state(order):
    """A child is made, changed, deleted, and made anew under the same name."""
    store = Store()
    events = (
        (store.put, at(11, child(note="first"))),
        (store.put, at(12, child(note="changed"))),
        (store.remove, at(13, child())),
        (store.put, at(14, child(note="second"), "u2")),
    )
    for index in order:
        take, obj = events[index]
        take(JOB, obj)
    assert store.get(JOB, "team", "gemma4-x-gate")["metadata"]["note"] == "second"


def test_the_deleted_do_not_come_back(store):
    store.put(JOB, at(11, child()))
    assert store.remove(JOB, at(13, child()))
    assert not store.put(JOB, at(12, child()))
    assert store.snapshot(KEY, free_gates=1).jobs == ()


def test_what_was_only_hidden_comes_back(store):
    """An object that loses its label is told of as deleted; it returns with the label, under the same uid."""
    store.put(SERVICE, at(11, child(SERVICE, "gemma4")))
    store.remove(SERVICE, at(12, child(SERVICE, "gemma4")))
    assert store.put(SERVICE, at(13, child(SERVICE, "gemma4")))


def test_what_we_have_deleted_stays_away(store):
    """The answer to a deletion tells no resourceVersion; events from before it may still come."""
    store.put(JOB, at(11, child()))
    assert store.forget(JOB, "team", "gemma4-x-gate", "u1")
    assert not store.put(JOB, at(99, child()))
    assert store.put(JOB, at(50, child(), "u2"))


def test_a_deletion_of_the_predecessor_leaves_the_successor(store):
    store.put(JOB, at(14, child(), "u2"))
    assert not store.remove(JOB, at(13, child(), "u1"))
    assert store.get(JOB, "team", "gemma4-x-gate") is not None


def test_a_list_drops_ghosts_and_keeps_what_is_newer_than_it(store):
    store.put(JOB, at(11, child(name="ghost"), "u1"))
    store.put(JOB, at(25, child(name="newer"), "u2"))
    store.put(JOB, at(12, child(name="there"), "u3"))
    changed = store.replace(JOB, None, [at(12, child(name="there"), "u3")], 20)
    assert changed == {KEY}
    assert [job["metadata"]["name"] for job in store.snapshot(KEY, free_gates=1).jobs] == ["newer", "there"]


def test_a_list_of_one_namespace_says_nothing_about_others(store):
    store.put(JOB, at(11, child(namespace="elsewhere")))
    assert store.replace(JOB, "team", [], 20) == set()
    assert store.get(JOB, "elsewhere", "gemma4-x-gate") is not None


def test_a_list_without_news_changes_nothing(store):
    store.put(JOB, at(11, child()))
    assert store.replace(JOB, None, [at(11, child())], 20) == set()


def test_a_list_tells_both_owners_of_a_child_that_moved(store):
    store.put(JOB, at(11, child()))
    assert store.replace(JOB, None, [at(12, child(owner="other"))], 20) == {KEY, ("team", "other")}


def test_snapshot_holds_own_children_in_order(store):
    store.put(POD, at(11, child(POD, "b"), "u1"))
    store.put(POD, at(12, child(POD, "a"), "u2"))
    store.put(POD, at(13, child(POD, "c", owner="other"), "u3"))
    store.put(POD, at(14, child(POD, "d", namespace="elsewhere"), "u4"))
    store.put(DEPLOYMENT, at(15, child(DEPLOYMENT, "a"), "u5"))
    snapshot = store.snapshot(KEY, free_gates=3)
    assert [pod["metadata"]["name"] for pod in snapshot.pods] == ["a", "b"]
    assert len(snapshot.deployments) == 1
    assert snapshot.free_gates == 3


def test_a_child_that_changes_hands_moves(store):
    store.put(POD, at(11, child(POD, "a")))
    store.put(POD, at(12, child(POD, "a", owner="other")))
    assert store.snapshot(KEY, free_gates=1).pods == ()


def test_no_snapshot_of_what_is_gone(store):
    store.remove(GEMMASERVE, at(11, gemmaserve(), "owner"))
    assert store.snapshot(KEY, free_gates=1) is None
    assert store.gemmaserves() == ()


def test_managed_fields_are_left_out_and_kinds_put_in(store):
    item = at(11, child(managedFields=[{"manager": "x"}]))
    del item["kind"]
    store.put(JOB, item)
    held = store.get(JOB, "team", "gemma4-x-gate")
    assert "managedFields" not in held["metadata"]
    assert held["kind"] == "Job"
    assert "managedFields" in item["metadata"]


def test_staleness_is_the_time_since_the_last_word():
    now = [100.0]
    store = Store(clock=lambda: now[0])
    assert store.staleness(POD) == float("inf")
    store.heard(POD)
    store.replace(JOB, None, [], 5)
    now[0] = 130.0
    assert {kind.kind: store.staleness(kind) for kind in WATCHED if store.staleness(kind) < 99} == {
        "Pod": 30,
        "Job": 30,
    }


def test_the_dead_are_forgotten_after_a_while():
    now = [0.0]
    store = Store(clock=lambda: now[0])
    store.remove(JOB, at(11, child()))
    now[0] = 1000.0
    store.replace(JOB, None, [], 20)
    assert store.put(JOB, at(11, child()))
