"""The operator through rollouts while the way to the API server, or the API server itself, misbehaves.

Each row is one fault: what is done, what the operator does about it, and whether its process may end over it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from tests.contract.kube import eventually

from gemmaserve_operator.cluster.kinds import SERVICE

from . import faults
from .faults import Code, CutWatches, DroppedEvents, Fault

GOES_ON = "tries again, later each time"
STARTS_ANEW = "the process ends, is started again, and goes on from what there is"


@dataclass(frozen=True)
class Row:
    fault: str
    happens: str
    make: Callable[[], Fault]
    seconds: float | None = None
    """How long it lasts; None: until everything is as it is to be."""
    ends: bool = False
    """Whether the process ends over it; else it must not."""
    timeout: float = 60


def _every(code: int, happens: str, *, ends: bool = False) -> Row:
    return Row(f"every request gets {code}, for 6 s", happens, lambda: Code(code), 6, ends)


def _some(code: int, happens: str = GOES_ON) -> Row:
    return Row(f"one write in three gets {code}", happens, lambda: Code(code, one_write_in=3))


REFUSED = "shows it as a condition, tries again, later each time"
ROWS = {
    "none": Row("none", "the rollout, for comparison", Fault),
    "down-briefly": Row("connections refused, for 5 s", GOES_ON, faults.Down, 5),
    "down-long": Row("connections refused, for 20 s", GOES_ON, faults.Down, 20),
    "slow": Row("every answer 0.5 s late", "goes on, slower", lambda: faults.Slow(0.5)),
    "silent": Row(
        "two writes and a list are never answered",
        "gives them up after 20 s and sends them again",
        lambda: faults.Silent(writes=2, lists=1),
        timeout=90,
    ),
    "answers-lost": Row(
        "writes are made, every other answer is lost", "sends them again; they are made once", faults.LostAnswers
    ),
    "nonsense": Row("every request gets 200 and a page of HTML, for 6 s", STARTS_ANEW, faults.Nonsense, 6, ends=True),
    "half-answers": Row(
        "every other answer ends in its middle, for 6 s", "takes it for none and asks again", faults.HalfAnswers, 6
    ),
    "401-every": _every(401, STARTS_ANEW, ends=True),
    "403-every": _every(403, REFUSED),
    "409-every": _every(409, STARTS_ANEW, ends=True),
    "410-every": _every(410, STARTS_ANEW, ends=True),
    "422-every": _every(422, STARTS_ANEW, ends=True),
    "429-every": _every(429, "waits as long as Retry-After says"),
    "500-every": _every(500, GOES_ON),
    "503-every": _every(503, GOES_ON),
    "401-some": _some(401),
    "403-some": _some(403, REFUSED),
    "409-some": _some(409, "looks at what is there and plans anew"),
    "410-some": _some(410, REFUSED),
    "422-some": _some(422, REFUSED),
    "429-some": _some(429, "waits as long as Retry-After says"),
    "500-some": _some(500),
    "503-some": _some(503),
    "watches-cut": Row("watches end every 0.3 s", "watches on from where it was", lambda: CutWatches(0.3)),
    "watches-cut-midline": Row(
        "watches end every 0.5 s in the middle of an event",
        STARTS_ANEW,
        lambda: CutWatches(0.5, faults.HALF_AN_EVENT),
        6,
        ends=True,
    ),
    "watches-410": Row(
        "watches end every second with 410 Gone",
        "begins them anew, and lists what was deleted meanwhile",
        lambda: CutWatches(1.0, faults.watch_error(410)),
    ),
    "watches-500": Row(
        "watches end after a second with an error, for 6 s",
        STARTS_ANEW,
        lambda: CutWatches(1.0, faults.watch_error(500)),
        6,
        ends=True,
    ),
    "events-dropped": Row(
        "every second event is dropped",
        "the next list puts the picture right",
        lambda: DroppedEvents(one_in=2),
        timeout=90,
    ),
    "events-none": Row("no event at all", "goes from list to list", lambda: DroppedEvents(one_in=1), timeout=170),
    "events-late": Row("events twice, and older ones after newer", "takes only what is newer", faults.LateEvents),
    "lists-stale": Row("lists as of 8 s before", "takes only what is newer", faults.StaleLists, 8),
}


SHORT = {"none", "down-briefly", "answers-lost", "409-some", "429-every", "watches-410", "events-dropped"}
"""The few that say most: `make faults-short`."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.short if n in SHORT else ()) for n in ROWS])
def test_rollouts_end_as_they_should_under(name, scenario, tell):
    row = ROWS[name]
    with scenario.proxy.fault(row.make()):
        scenario.begin()
        since = scenario.started
        if row.seconds is not None:
            time.sleep(row.seconds)
            since = time.monotonic()
        else:
            seconds = scenario.until_recovered(since, row.timeout)
    if row.seconds is not None:
        seconds = scenario.until_recovered(since, row.timeout)
    scenario.until_at_rest()
    tell(scenario, row.fault, row.happens, seconds, lasting=row.seconds is None)
    assert row.ends == bool(scenario.supervisor.restarts), scenario.supervisor.exit_codes


@pytest.mark.short
def test_deletions_in_a_gap_of_the_watches_are_noticed(scenario, tell):
    """Watches tell of no deletion and then end with 410: what was deleted is made again."""
    where = SERVICE, scenario.namespace, f"good-{scenario.good.status['activeRevision']['name']}"
    with scenario.proxy.fault(DroppedEvents(type="DELETED")):
        scenario.kube.delete(*where)
        time.sleep(1)
        assert scenario.kube.get(*where) is None
    since = time.monotonic()
    with scenario.proxy.fault(CutWatches(0.1, faults.watch_error(410))):
        time.sleep(0.5)
    eventually(lambda: scenario.kube.get(*where), "it is back", 8)
    seconds = time.monotonic() - since
    scenario.begin()
    scenario.until_recovered(scenario.started, 60)
    scenario.until_at_rest()
    tell(scenario, "a deletion in a gap of the watches (410 Gone)", "a list finds it; the child is made again", seconds)
