"""Run every fault test and write docs/reliability.md from what was seen.

    .venv/bin/python tests/faults/run.py          # make faults

Three runs stand side by side, each on an API server of its own: faults are mostly waiting.
"""

import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reliability.md"
RUNS_AT_ONCE = 3
HEADER = """\
# What happens when things go wrong

    make faults

Generated from the tests in `tests/faults/` by that command: {count} faults in {minutes:.0f} minutes, on a real API
server with real controllers, the operator a process of its own. In each test three resources are on their way when the
fault strikes: one goes on to an image whose gate passes, one to an image whose gate fails, one is new. A test passes
only if

- all three end as they should: the first on its new image, the second on its old one and saying which regression
  failed, the third serving;
- at no moment, looked at five times a second past the fault, was a Service directed at a revision without a passed
  gate, was there a serving pod of the failing image, or was there nothing ready behind a Service that had served;
- at most {tries} writes were tried (an undisturbed run makes {undisturbed}), and none at all once the end was reached.

The time is from the end of the fault until everything was as it should be; where the fault does not end, from the
change of the resources (marked *).
A process that ends is started again by Kubernetes, after 10 s the first time and at most five minutes; here after
0.5 s to 4 s.

| fault | what the operator does | recovered after | restarts | writes tried |
|---|---|---:|---:|---:|
"""
FOOTER = """
Beside these, tests show:

- The operator is killed after each single write of a rollout in turn, before it has read the answer, and ends in the
  same state (`tests/contract/test_crash_after_every_write.py`).
- 10,000 random resources, edits, deletions, crashes and nodes through the planner (`make fuzz-planner`): no unverified
  revision is ever selected, no serving revision is deleted before its successor is confirmed, every plan comes to
  rest, and at rest nothing is written.
- A lease that is not renewed is judged by how long it has not changed, by a clock that only goes forward
  (`tests/unit/cluster/test_lease.py`): a wrong wall clock neither takes nor loses the lease.
"""


class Collector:
    """Keeps what the tests have noted."""

    def __init__(self):
        self.rows = []
        self.failed = []

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.failed.append(report.nodeid)
        noted = dict(report.user_properties)
        if report.when == "call" and "fault" in noted:
            self.rows.append(noted)


def row(noted):
    mark = " *" if noted["lasting"] else ""
    cells = noted["fault"], noted["happens"], f"{noted['seconds']:.1f} s{mark}", noted["restarts"], noted["writes"]
    return f"| {' | '.join(map(str, cells))} |\n"


def main():
    collector, start = Collector(), time.monotonic()
    options = ["-q", "-n", str(RUNS_AT_ONCE), "--dist", "worksteal", "--rootdir", str(ROOT)]
    if pytest.main([*options, str(ROOT / "tests" / "faults")], plugins=[collector]):
        sys.exit(f"{len(collector.failed)} failed; {PAGE.relative_to(ROOT)} stays as it was")
    rows = sorted(collector.rows, key=lambda noted: noted["order"])
    undisturbed = rows[0]
    header = HEADER.format(
        count=len(rows) - 1,
        minutes=(time.monotonic() - start) / 60,
        tries=max(noted["tries"] for noted in rows),
        undisturbed=undisturbed["writes"],
    )
    PAGE.write_text(header + "".join(map(row, rows)) + FOOTER)


if __name__ == "__main__":
    main()
