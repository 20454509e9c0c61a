"""The command `toolstream`."""

from __future__ import annotations

import sys
from importlib import import_module

_NEEDS = {"aiohttp", "rich", "typer"}


def main() -> None:
    """Run the command, or say how to install what it needs: the parser alone is installed without it."""
    try:
        app = import_module("toolstream.cli").app
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in _NEEDS:
            raise
        sys.exit(f"toolstream needs {package}; install it with: pip install 'gemmaserve-parser[toolstream]'")
    app()


if __name__ == "__main__":
    main()
