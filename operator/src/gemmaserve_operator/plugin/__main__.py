"""The commands `kubectl-gemmaserve` and `kubectl_complete-gemmaserve`, by which kubectl knows a plugin."""

import sys
from importlib import import_module
from typing import Any

_NEEDS = {"rich", "typer"}


def main() -> None:
    """Entry point of `kubectl gemmaserve`; exits 0, 1 (the cluster says no) or 2 (usage)."""
    _load().app(prog_name="kubectl gemmaserve")


def complete() -> None:
    """Entry point of `kubectl_complete-gemmaserve`, which kubectl's own shell completion asks for words."""
    _load().complete(sys.argv[1:])


def _load() -> Any:  # noqa: ANN401 - a module
    """The command line, or how to install what it needs: the operator's image has no use for it."""
    try:
        return import_module("gemmaserve_operator.plugin.cli")
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _NEEDS:
            raise
        sys.exit(f"kubectl gemmaserve needs {package}; install it with: pip install 'gemmaserve-operator[kubectl]'")


if __name__ == "__main__":
    main()
