"""File descriptors: one a stream, and a few more."""

from __future__ import annotations

import resource

_SPARE = 100


class TooFewDescriptors(Exception):  # noqa: N818  (a state of the system)
    """The system allows fewer open files than streams were asked for."""


def allow_streams(streams: int) -> None:
    """Raise this process's limit of open files so that `streams` connections fit.

    Raises:
        TooFewDescriptors: The hard limit is lower.
    """
    wanted = streams + _SPARE
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise TooFewDescriptors(f"{streams} streams need {wanted} open files; allow them with: ulimit -Hn {wanted}")
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
