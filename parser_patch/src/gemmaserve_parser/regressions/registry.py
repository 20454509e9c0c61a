"""The regressions there are, in the order in which they run. Knows nothing of vLLM."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

_MODULES = ("identity", "strictness", "grammar", "boundaries", "endings", "requests", "endpoints", "endurance")

#: vLLM's name of the parser of gpt-oss, which has regressions of its own; their names begin with the prefix.
HARMONY_PARSER = "openai"
_HARMONY_PREFIX = "harmony_"
_HARMONY_MODULES = ("harmony", "harmony_endpoints")


class Regression(NamedTuple):
    """One regression.

    Attributes:
        name: Its name, as reports carry it.
        shows: What it shows, in a sentence.
        run: Called with the server; raises AssertionError with what was expected and what came.
    """

    name: str
    shows: str
    run: Callable[[Any], None]


_registered: list[Regression] = []


def regression(run: Callable[[Any], None]) -> Callable[[Any], None]:
    """Register a function under its name; its docstring says what it shows."""
    _registered.append(Regression(run.__name__, (run.__doc__ or "").strip().splitlines()[0], run))
    return run


def add(name: str, shows: str, run: Callable[[Any], None]) -> None:
    """Register one of a table."""
    _registered.append(Regression(name, shows, run))


def registered(parser: str) -> list[Regression]:
    """All of those for the model that a parser's name stands for."""
    harmony = parser == HARMONY_PARSER
    for module in _HARMONY_MODULES if harmony else _MODULES:
        import_module(f"gemmaserve_parser.regressions.{module}")
    return [each for each in _registered if each.name.startswith(_HARMONY_PREFIX) == harmony]
