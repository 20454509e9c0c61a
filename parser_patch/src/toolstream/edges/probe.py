"""What a server says of itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from toolstream.core.printable import printable

if TYPE_CHECKING:
    from toolstream.edges.client import Client


class Unreachable(Exception):  # noqa: N818  (a state of the server)
    """The server does not say which model it serves; the message says what to do."""


class ServerFacts(NamedTuple):
    """Who answers.

    Attributes:
        model: The model to ask for.
        vllm_version: What `/version` says; empty where the server is not vLLM.
    """

    model: str
    vllm_version: str


async def observe_server(client: Client, url: str, *, model: str | None) -> ServerFacts:
    """Ask a server for its model and version.

    Args:
        client: An open client.
        url: For the error message.
        model: Taken as it is; None asks `/v1/models` for the first.

    Raises:
        Unreachable: There is no answer, and no model was given.
    """
    version = await client.get_json("/version")
    vllm_version = str(version.get("version", "")) if isinstance(version, dict) else ""
    if model is None:
        listed = await client.get_json("/v1/models")
        try:
            model = str(listed["data"][0]["id"])
        except (TypeError, KeyError, IndexError, AttributeError):
            raise Unreachable(
                f"{url} names no model at /v1/models. Is the server up, is the URL right, does it want --api-key?"
                " With --model NAME it is not asked."
            ) from None
    return ServerFacts(model, printable(vllm_version))
