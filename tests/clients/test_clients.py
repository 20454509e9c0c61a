"""What users of real clients get from a real vLLM: with our parser everything; with vLLM's, the table says what.

A server with vLLM's own parser cannot fail a test here, unless a client could not be driven at all: what it breaks is
measured, and written into docs/clients.md.
"""

from pathlib import Path

import installs
import pytest
import scenarios
import servers
import sessions
import table

pytestmark = pytest.mark.clients

CASES = [
    (client, scenario)
    for client in table.CLIENTS
    for scenario in ([scenarios.THREE_FILES] if client.driver == sessions.OPENCODE else scenarios.SCENARIOS)
]


@pytest.mark.timeout(servers.START_SECONDS + sessions.opencode.SECONDS)
@pytest.mark.parametrize("server", servers.SERVERS, indirect=True, ids=str)
@pytest.mark.parametrize(("client", "scenario"), CASES, ids=lambda each: each.name)
def test_session(
    server: servers.Served,
    client: table.Client,
    scenario: scenarios.Scenario,
    clients: installs.Clients,
    record: table.Record,
    request: pytest.FixtureRequest,
    tmp_path: Path,
) -> None:
    url = request.getfixturevalue("litellm") if client.through_litellm else server.url
    outcome = sessions.run(client.driver, clients, url, scenario, tmp_path)
    wrong = sessions.problem(scenario, outcome)
    record.setdefault(str(server.server), {}).setdefault(client.name, {})[scenario.name] = wrong
    assert wrong is None or server.server.parser == "upstream", f"{wrong}\n{outcome}"
