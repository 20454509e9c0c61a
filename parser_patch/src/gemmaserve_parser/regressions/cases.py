"""Making cases: the tools that the regressions declare, and what is expected of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gemmaserve_parser.replay import Case

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gemmaserve_parser.regressions.server import Server


def tool(name: str, **properties: Any) -> dict[str, Any]:
    """A declared tool; a property is a JSON schema or the name of a type."""
    schemas = {key: {"type": value} if isinstance(value, str) else value for key, value in properties.items()}
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": schemas}}}


READ_FILE = tool("read_file", path="string")
TERMINAL = tool("terminal", command="string")
GET_TIME = tool("get_time", city="string")
GET_STATUS = tool("get_status")
SAVE = tool("save", id="integer", ratio="number", force="boolean", tags={"type": "array"}, meta={"type": "object"})
TOOLS = [READ_FILE, TERMINAL, GET_TIME, GET_STATUS, SAVE]

THREE_READS = "".join(f'<|tool_call>call:read_file{{path:<|"|>{name}.txt<|"|>}}<tool_call|>' for name in "abc")
THREE_CALLS = [("read_file", {"path": f"{name}.txt"}) for name in "abc"]


def case(  # noqa: PLR0913  (an answer's parts, by keyword)
    text: str,
    *,
    calls: Sequence[tuple[str, Mapping[str, Any]]] = (),
    content: str | None = None,
    reasoning: str | None = None,
    finish_reason: str | None = None,
    tools: Sequence[Mapping[str, Any]] | None = None,
    typed: Sequence[str] = (),
    chunks: Sequence[str] | None = None,
    **request: Any,
) -> Case:
    """A case: what the model wrote, and what a client has to receive.

    Args:
        text: What the model wrote, special tokens spelled out.
        calls: The expected calls: names and arguments.
        content: The expected content.
        reasoning: The expected reasoning.
        finish_reason: The expected one; by default `tool_calls` when calls are expected, else `stop`.
        tools: The declared tools; by default `TOOLS`.
        typed: Passages of `text` that the model wrote with ordinary tokens although they read like markers.
        chunks: A cutting to be tried beside the others.
        request: Other fields of the request; `finish`, `prompt` and `no_reasoning_parser` as in `replay`.
    """
    fields: dict[str, Any] = {
        "id": "regression",
        "model": "gemma4",
        "text": text,
        "tools": [*(TOOLS if tools is None else tools)],
        "request": request,
        "plain_text_spans": [[text.index(part), text.index(part) + len(part)] for part in typed],
        "expect": {
            "tool_calls": [{"name": name, "arguments": arguments} for name, arguments in calls],
            "content": content,
            "reasoning": reasoning,
            "finish_reason": finish_reason or ("tool_calls" if calls else "stop"),
        },
    }
    if chunks is not None:
        fields["chunks"] = [*chunks]
    return Case(fields)


def checks(made: Case) -> Any:
    """A regression that runs a case in every mode."""

    def run(server: Server) -> None:
        server.check(made)

    return run


def expect(found: object, wanted: object, what: str) -> None:
    """Compare, with a short message.

    Raises:
        AssertionError: They differ.
    """
    if found != wanted:
        raise AssertionError(f"{what}: expected {wanted!r}, got {found!r}")
