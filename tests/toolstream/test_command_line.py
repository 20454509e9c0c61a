import subprocess
import sys

import pytest
from typer.testing import CliRunner

from toolstream.cli import app


@pytest.mark.parametrize("command", ["check", "load", "proxy-record", "selftest"])
def test_help_has_examples_one_a_line(command):
    shown = CliRunner().invoke(app, [command, "--help"]).stdout
    examples = shown.partition("Examples:")[2].strip().splitlines()
    assert examples
    assert all(line.split()[:2] == ["toolstream", command] for line in examples)


@pytest.mark.parametrize("missing", ["aiohttp", "rich", "typer"])
def test_without_its_extra_it_says_how_to_install_it(missing):
    code = f"import sys; sys.modules[{missing!r}] = None; from toolstream.__main__ import main; main()"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1
    assert (
        result.stderr == f"toolstream needs {missing}; install it with: pip install 'gemmaserve-parser[toolstream]'\n"
    )


def test_the_core_needs_nothing_of_the_extra():
    code = """
import sys
for name in ("aiohttp", "rich", "typer"):
    sys.modules[name] = None
import toolstream.core.checkreport, toolstream.core.gate, toolstream.core.loadreport, toolstream.core.verdicts
"""
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)
