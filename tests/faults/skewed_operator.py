"""The operator with a wall clock that jumps: `skewed_operator.py FLAGS...`.

Each look at the clock is twenty minutes ahead, right, or as much behind, in turn: less than the deadline of a rollout.
Monotonic clocks are as they are.
"""

import argparse
import asyncio
import itertools
from datetime import datetime, timedelta

from gemmaserve_operator.cluster import events, lease
from gemmaserve_operator.runtime import reconciler
from gemmaserve_operator.runtime.app import run
from gemmaserve_operator.runtime.logs import set_up_logging
from gemmaserve_operator.runtime.settings import add_settings, read_settings

OFFSETS = itertools.cycle([timedelta(minutes=20), timedelta(), timedelta(minutes=-20)])


class JumpingClock(datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) + next(OFFSETS)


def main() -> None:
    for module in (reconciler, lease, events):
        module.datetime = JumpingClock
    parser = argparse.ArgumentParser()
    add_settings(parser)
    settings = read_settings(parser.parse_args())
    set_up_logging(settings.log_level, settings.log_format)
    asyncio.run(run(settings))


if __name__ == "__main__":
    main()
