"""`python -m localcluster.demo.stream`: a streamed chat completion with three tool calls, shown chunk by chunk.

It asks as any client would, with three tools declared, and shows what comes: raw server-sent events, nothing merged.
The right calls are those that the question names; then it hands back results and shows the sentence about them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence

import httpx
from rich.console import Console
from rich.text import Text

from localcluster.demo.verdict import Call, Json, Rule, content_of, judge, tool_call_deltas

QUESTION = "Read src/main.py, list the directory docs and tell me the weather in Zürich."
CALLS = (
    Call("read_file", {"path": "src/main.py"}),
    Call("list_directory", {"path": "docs"}),
    Call("get_weather", {"city": "Zürich"}),
)
RESULTS = ("hello", "guide.md", "sunny, 21 degrees")
"""What the tools are said to have found, in the order of `CALLS`."""
MAX_TOKENS = 256
TIMEOUT_SECONDS = 120.0

_TOOLS: tuple[tuple[str, str, str, str], ...] = (
    ("read_file", "Read one file.", "path", "Path of the file"),
    ("list_directory", "List a directory", "path", "Path of the directory"),
    ("get_weather", "Weather forecast for a city", "city", "Name of the city"),
)


class StreamError(RuntimeError):
    """The server could not be asked, or did not answer with a stream; the message says what to look at."""


def build_request(model: str, *later: Json) -> Json:
    """The body of the chat completion: the question, and the messages that came `later`."""
    tools = [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": description,
                "parameters": {
                    "type": "object",
                    "properties": {argument: {"type": "string", "description": about}},
                    "required": [argument],
                },
            },
        }
        for name, description, argument, about in _TOOLS
    ]
    messages = [{"role": "user", "content": QUESTION}, *later]
    return {
        "model": model,
        "messages": messages,
        "tools": tools,
        "stream": True,
        "temperature": 0,
        "max_tokens": MAX_TOKENS,
    }


def answered(chunks: Sequence[Json]) -> list[Json]:
    """The messages that follow a stream of `CALLS`: the assistant's, and a result of each call by its id."""
    calls = [
        {key: delta.get(key) for key in ("id", "type", "function")}
        for chunk in chunks
        for delta in tool_call_deltas(chunk)
    ]
    results = [
        {"role": "tool", "tool_call_id": call["id"], "content": result}
        for call, result in zip(calls, RESULTS, strict=False)
    ]
    return [{"role": "assistant", "content": "", "tool_calls": calls}, *results]


def stream_chunks(client: httpx.Client, body: Json) -> Iterator[Json]:
    """Ask for a completion and give each chunk as it comes.

    Raises:
        StreamError: no connection, an HTTP error, a line that is not an event, or a stream that just ends.
    """
    try:
        with client.stream("POST", "/v1/chat/completions", json=body) as response:
            if response.is_error:
                response.read()
            _check(response)
            yield from _events(response)
    except httpx.HTTPError as error:
        raise StreamError(
            f"{client.base_url} does not answer ({error!r}); is the pod ready and the address right?"
        ) from error


def _check(response: httpx.Response) -> None:
    if response.is_error:
        raise StreamError(f"{response.request.url} answered {response.status_code}: {response.text[:500]}")


def _events(response: httpx.Response) -> Iterator[Json]:
    for line in response.iter_lines():
        if not line or line.startswith(":"):
            continue
        payload = line.removeprefix("data: ")
        if payload == "[DONE]":
            return
        try:
            chunk: Json = json.loads(payload)
        except json.JSONDecodeError as error:
            raise StreamError(f"not an event: {line[:200]!r}") from error
        if "error" in chunk:
            raise StreamError(f"the server ended the stream with an error: {chunk['error']}")
        yield chunk
    raise StreamError("the stream ended without [DONE]")


def show_chunk(console: Console, seconds: float, chunk: Json) -> None:
    """Print one chunk: tool calls whole and marked, text quoted, the rest by name."""
    line = Text(f"{seconds:7.2f} s  ", style="dim")
    if calls := tool_call_deltas(chunk):
        line.append("TOOL CALL  ", style="bold green").append(json.dumps(calls, ensure_ascii=False), style="green")
    elif content := content_of(chunk):
        line.append("text       ").append(repr(content))
    else:
        reasons = [choice.get("finish_reason") for choice in chunk.get("choices") or [] if choice.get("finish_reason")]
        line.append("end        " if reasons else "other      ").append(", ".join(reasons) or _summary(chunk))
    console.print(line, soft_wrap=True)


def _summary(chunk: Json) -> str:
    deltas = [choice.get("delta") for choice in chunk.get("choices") or []]
    return json.dumps(deltas or {key: value for key, value in chunk.items() if key == "usage"}, ensure_ascii=False)


def show_verdict(console: Console, rules: list[Rule]) -> bool:
    """Print how each rule went; whether all hold."""
    console.print()
    for rule in rules:
        mark = Text("  ok    ", style="green") if rule.problem is None else Text("  WRONG ", style="bold red")
        line = mark.append(rule.name, style="default").append(f": {rule.problem}" if rule.problem else "")
        console.print(line, soft_wrap=True)
    good = all(rule.problem is None for rule in rules)
    verdict = "three whole tool calls, each in one chunk" if good else "not what a strict client can use"
    console.print(Text(f"\n{verdict}", style="bold green" if good else "bold red"))
    return good


def run(url: str, model: str, console: Console) -> bool:
    """Stream, show, judge; whether every rule holds.

    Raises:
        StreamError: as `stream_chunks` does.
    """
    console.print(f"POST {url}/v1/chat/completions, stream: true, three tools")
    console.print(f"user: {QUESTION}\n", markup=False, soft_wrap=True)
    with httpx.Client(base_url=url, timeout=TIMEOUT_SECONDS) as client:
        chunks = _shown(console, client, build_request(model))
        good = show_verdict(console, judge(chunks, CALLS))
        if good:
            console.print("\nwith the results of the tools:", soft_wrap=True)
            sentence = "".join(map(content_of, _shown(console, client, build_request(model, *answered(chunks)))))
            console.print(f"\nassistant: {sentence}", markup=False, soft_wrap=True)
    return good


def _shown(console: Console, client: httpx.Client, body: Json) -> list[Json]:
    """The chunks of an answer, each printed as it comes."""
    started = time.monotonic()
    chunks: list[Json] = []
    for chunk in stream_chunks(client, body):
        chunks.append(chunk)
        show_chunk(console, time.monotonic() - started, chunk)
    return chunks


def main() -> int:
    """The command line; 0 if every rule holds, 1 if one does not, 2 if the server could not be asked."""
    parser = argparse.ArgumentParser(
        prog="python -m localcluster.demo.stream",
        description="Stream a chat completion with three tool calls from a server that runs the demo's model, "
        "and judge it by what strict clients need.",
        epilog="example: python -m localcluster.demo.stream --url http://127.0.0.1:8000 --model gemma-4",
    )
    parser.add_argument("--url", required=True, help="the server, as in http://HOST:PORT (without /v1)")
    parser.add_argument("--model", required=True, help="the served model's name")
    arguments = parser.parse_args()
    console = Console(highlight=False)
    try:
        return 0 if run(arguments.url.rstrip("/"), arguments.model, console) else 1
    except StreamError as error:
        Console(stderr=True, highlight=False).print(f"error: {error}", style="red", markup=False, soft_wrap=True)
        return 2


if __name__ == "__main__":
    sys.exit(main())
