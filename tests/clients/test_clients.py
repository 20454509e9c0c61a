"""What users of real clients get from a real vLLM: with our parser everything; with vLLM's, the table says what.

A server with vLLM's own parser cannot fail a test here, unless a client could not be driven at all: what it breaks is
measured, and written into docs/clients.md.
"""

from pathlib import Path

import installs
import pytest
import servers
import sessions
import table

pytestmark = pytest.mark.clients


@pytest.mark.timeout(servers.START_SECONDS + sessions.CLIENT_SECONDS)
@pytest.mark.parametrize("server", servers.SERVERS, indirect=True, ids=str)
@pytest.mark.parametrize("client", table.CLIENTS, ids=lambda each: each.name)
def test_sessions(
    server: servers.Served,
    client: table.Client,
    clients: installs.Clients,
    record: table.Record,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    url = request.getfixturevalue("litellm") if client.through_litellm else server.url
    outcomes = sessions.run(client.driver, clients, url, tmp_path)
    wrong = {scenario.name: sessions.problem(scenario, outcome) for scenario, outcome in outcomes.items()}
    record.setdefault(str(server.server), {})[client.name] = wrong
    table.save(record)
    assert server.server.parser == "upstream" or not any(wrong.values()), outcomes
