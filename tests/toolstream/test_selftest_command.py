import json

import pytest
from typer.testing import CliRunner

from toolstream.cli import app


@pytest.mark.timeout(60)
def test_a_small_selftest_holds_its_streams_and_states_a_ceiling():
    result = CliRunner().invoke(app, ["selftest", "--streams", "20", "-n", "50", "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["streams"], found["whole"]) == (20, 20)
    assert found["requests_per_second"] > 0
    assert found["requests_per_cpu_second"] > 0
    assert found["chunks_per_second"] > found["requests_per_second"]


def test_more_streams_than_the_system_allows_are_refused_with_the_command_that_helps(monkeypatch):
    monkeypatch.setattr("toolstream.edges.descriptors.resource.getrlimit", lambda _: (64, 64))
    result = CliRunner().invoke(app, ["selftest", "--streams", "1000"])
    assert result.exit_code == 2
    assert "ulimit -Hn 1100" in result.stderr
