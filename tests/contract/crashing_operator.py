"""The operator, dying on the spot after its Nth write: `crashing_operator.py N FLAGS...`.

It dies when the API server has answered and before it has read the answer: the write is made, and nobody knows.
"""

import argparse
import asyncio
import os
import sys

from gemmaserve_operator.runtime.app import run
from gemmaserve_operator.runtime.logs import set_up_logging
from gemmaserve_operator.runtime.settings import add_settings, read_settings

WRITES = frozenset({"apply", "patch", "create", "update", "delete"})
KILLED = 137


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("writes", type=int)
    add_settings(parser)
    arguments = parser.parse_args()
    left = arguments.writes

    def observe(verb: str, code: int, _: float) -> None:
        nonlocal left
        if verb in WRITES and 200 <= code < 300:
            left -= 1
            print(f"{verb}, {left} left", file=sys.stderr, flush=True)
            if left == 0:
                os._exit(KILLED)

    settings = read_settings(arguments)
    set_up_logging(settings.log_level, settings.log_format)
    asyncio.run(run(settings, observe=observe))


if __name__ == "__main__":
    main()
