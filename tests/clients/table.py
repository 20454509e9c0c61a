"""The table in docs/clients.md: which client gets what it needs, by server."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from scenarios import SCENARIOS, THREE_FILES
from servers import INTERVALS, SERVERS, VERSIONS, Server

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "clients.md"
RECORD = HERE.parents[1] / "build" / "clients.json"
BEGIN, END = "<!-- clients:begin -->", "<!-- clients:end -->"

Record = dict[str, dict[str, dict[str, str | None]]]
"""By server, client and scenario: what was wrong, None if nothing was."""


@dataclass(frozen=True)
class Client:
    """A row of the table.

    Attributes:
        name: As in the table, without versions.
        driver: What runs it (see `sessions`).
        packages: Whose versions are shown.
        through_litellm: Whether LiteLLM's proxy stands between it and the server.
    """

    name: str
    driver: str
    packages: tuple[str, ...]
    through_litellm: bool = False


CLIENTS = (
    Client("opencode", "opencode", ("opencode-linux-x64",)),
    *(
        Client(f"@ai-sdk/openai-compatible {provider}", f"ai-sdk-{provider}", (f"openai-compatible-{provider}", core))
        for provider, core in (("0.2", "ai-4"), ("1", "ai-5"), ("2", "ai-6"), ("3", "ai-7"))
    ),
    Client("openai chat", "openai-chat", ("openai",)),
    Client("openai chat helper", "openai-chat-helper", ("openai",)),
    Client("openai responses", "openai-responses", ("openai",)),
    Client("anthropic messages", "anthropic-messages", ("anthropic",)),
    Client("LiteLLM, openai chat", "openai-chat", ("litellm", "openai"), through_litellm=True),
    Client("LiteLLM, anthropic messages", "anthropic-messages", ("litellm", "anthropic"), through_litellm=True),
    Client(
        "LiteLLM, @ai-sdk/openai-compatible 2", "ai-sdk-2", ("litellm", "openai-compatible-2"), through_litellm=True
    ),
)


def load() -> Record:
    """What earlier runs with the same clients and servers left, so that one server can be run again alone."""
    try:
        kept = json.loads(RECORD.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return kept["outcomes"] if kept["versions"] == versions() else {}


def save(record: Record) -> None:
    """Keep the record."""
    RECORD.parent.mkdir(exist_ok=True)
    kept = {"versions": versions(), "outcomes": record}
    RECORD.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write(record: Record) -> None:
    """Put the table of what the record tells of into docs/clients.md."""
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{render(record)}{END}{rest.split(END)[1]}", encoding="utf-8")


def versions() -> dict[str, str]:
    """Each package of `CLIENTS` and its version, as the locks have it."""
    javascript = json.loads((HERE / "package.json").read_text(encoding="utf-8"))["dependencies"]
    found = {name: pinned.rpartition("@")[2] for name, pinned in javascript.items()}
    lock = (HERE / "requirements.txt").read_text(encoding="utf-8")
    return found | dict(re.findall(r"^(\w+)(?:\[.*\])?==(\S+)", lock, re.MULTILINE))


def render(record: Record) -> str:
    """The table, and below it what the clients said where something broke."""
    pairs = [(parser, version) for parser in ("upstream", "gemmaserve") for version in VERSIONS]
    titles = [f"{'vLLM' if parser == 'upstream' else 'GemmaServe on'} {version}" for parser, version in pairs]
    lines = [f"| client | {' | '.join(titles)} |", f"|---|{'---|' * len(titles)}"]
    for client in CLIENTS:
        cells = [_cell(record, client, parser, version) for parser, version in pairs]
        lines.append(f"| {_label(client)} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *_not_run(record), *_said(record), ""])


def _label(client: Client) -> str:
    found = versions()
    return f"{client.name} ({', '.join(_package(name, found[name]) for name in client.packages)})"


def _package(name: str, version: str) -> str:
    plain = "ai" if name.startswith("ai-") else "" if name.startswith(("openai-compatible", "opencode")) else name
    return f"{plain} {version}".strip()


def _cell(record: Record, client: Client, parser: str, version: str) -> str:
    """How many sessions were right, and which scenarios broke; at how many tokens a chunk, if not at all of them."""
    found = {interval: _found(record, Server(parser, version, interval), client) for interval in INTERVALS}
    ran = [interval for interval in INTERVALS if found[interval]]
    broken: dict[str, list[int]] = {}
    for interval in ran:
        for scenario, wrong in found[interval].items():
            if wrong is not None:
                broken.setdefault(scenario, []).append(interval)
    total, bad = sum(map(len, found.values())), sum(map(len, broken.values()))
    if not ran:
        return "not run"
    if not broken:
        return f"{total} of {total} right"
    listed = ", ".join(name if by == ran else f"{name} ({_by(by)})" for name, by in broken.items())
    return f"**{total - bad} of {total} right**; breaks: {listed}"


def _found(record: Record, server: Server, client: Client) -> dict[str, str | None]:
    return record.get(str(server), {}).get(client.name, {})


def _by(intervals: list[int]) -> str:
    return "by " + " and ".join(map(str, intervals))


def _not_run(record: Record) -> list[str]:
    missing = []
    for server in SERVERS:
        clients = [client.name for client in CLIENTS if not _found(record, server, client)]
        if clients:
            listed = "" if len(clients) == len(CLIENTS) else f" with {', '.join(clients)}"
            missing.append(f"{_server(server)}{listed}")
        lacking = Counter(name for client in CLIENTS for name in _lacking(client, _found(record, server, client)))
        missing += [f"{_server(server)}: {name} with {count} clients" for name, count in lacking.items()]
    return [f"Not run this time: {'; '.join(missing)}.", ""] if missing else []


def _lacking(client: Client, found: dict[str, str | None]) -> list[str]:
    """The scenarios that were not run with a client that was."""
    asked = [THREE_FILES] if client.driver == "opencode" else SCENARIOS
    return [each.name for each in asked if found and each.name not in found]


def _said(record: Record) -> list[str]:
    lines = ["| client | server | scenario | what its user gets |", "|---|---|---|---|"]
    for server in SERVERS:
        for client in CLIENTS:
            told: dict[str, list[str]] = {}
            for scenario, wrong in _found(record, server, client).items():
                if wrong is not None:
                    told.setdefault(wrong, []).append(scenario)
            for wrong, names in told.items():
                said = wrong.replace("|", "\\|").replace("`", "'")
                lines.append(f"| {client.name} | {_server(server)} | {', '.join(names)} | `{said}` |")
    return lines


def _server(server: Server) -> str:
    return f"{'vLLM' if server.parser == 'upstream' else 'GemmaServe on'} {server.version}, by {server.interval}"
