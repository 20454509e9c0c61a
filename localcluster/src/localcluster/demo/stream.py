"""`python -m localcluster.demo.stream`: a streamed chat completion with three tool calls, shown chunk by chunk.

It asks a server that runs the stand-in model (see `localcluster.tinymodel`) and dictates what that model says, token
by token. What is shown is what the server made of it on its real way out: raw server-sent events, nothing merged.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator

import httpx
from rich.console import Console
from rich.text import Text

from localcluster.demo.verdict import Call, Json, Rule, content_of, judge, tool_call_deltas

OPENING = "On it."
CALLS = (
    Call("read_file", {"path": "src/main.py"}),
    Call("get_weather", {"city": "Zürich", "days": 3}),
    Call("list_directory", {"path": "docs", "recursive": True}),
)
QUESTION = "Read src/main.py, list docs with everything below it, and tell me the weather in Zürich for three days."
TIMEOUT_SECONDS = 120.0

_TOOLS: tuple[tuple[str, str, Json], ...] = (
    ("read_file", "Read a file of the project", {"path": {"type": "string"}}),
    ("get_weather", "Weather forecast for a city", {"city": {"type": "string"}, "days": {"type": "integer"}}),
    ("list_directory", "List a directory", {"path": {"type": "string"}, "recursive": {"type": "boolean"}}),
)


class StreamError(RuntimeError):
    """The server could not be asked, or did not answer with a stream; the message says what to look at."""


def gemma_text() -> str:
    """What the model is made to write: a sentence and `CALLS`, in Gemma 4's own markup."""
    return OPENING + "".join(_gemma_call(call) for call in CALLS)


def _gemma_call(call: Call) -> str:
    def value(item: object) -> str:
        return f'<|"|>{item}<|"|>' if isinstance(item, str) else json.dumps(item)

    arguments = ",".join(f"{key}:{value(item)}" for key, item in call.arguments.items())
    return f"<|tool_call>call:{call.name}{{{arguments}}}<tool_call|>"


def build_request(model: str, forced_token_ids: list[int]) -> Json:
    """The body of the chat completion; `vllm_xargs` is the one field that an ordinary client would not send."""
    tools = [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": description,
                "parameters": {"type": "object", "properties": properties, "required": list(properties)},
            },
        }
        for name, description, properties in _TOOLS
    ]
    return {
        "model": model,
        "messages": [{"role": "user", "content": QUESTION}],
        "tools": tools,
        "stream": True,
        "max_tokens": len(forced_token_ids) + 8,
        "vllm_xargs": {"forced_token_ids": forced_token_ids},
    }


def stream_chunks(client: httpx.Client, model: str) -> Iterator[Json]:
    """Ask for the completion and give each chunk as it comes.

    Raises:
        StreamError: no connection, an HTTP error, a line that is not an event, or a stream that just ends.
    """
    try:
        answer = client.post("/tokenize", json={"model": model, "prompt": gemma_text(), "add_special_tokens": False})
        _check(answer)
        body = build_request(model, answer.json()["tokens"])
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
    console.print(
        "The model is a stand-in without trained weights: the request dictates its tokens "
        "(vllm_xargs.forced_token_ids).\nThe server, its streaming and its tool-call parsing are the real ones.",
        style="yellow",
        soft_wrap=True,
    )
    console.print(f"dictated: {gemma_text()}\n", markup=False, soft_wrap=True)
    started = time.monotonic()
    chunks: list[Json] = []
    with httpx.Client(base_url=url, timeout=TIMEOUT_SECONDS) as client:
        for chunk in stream_chunks(client, model):
            chunks.append(chunk)
            show_chunk(console, time.monotonic() - started, chunk)
    return show_verdict(console, judge(chunks, CALLS))


def main() -> int:
    """The command line; 0 if every rule holds, 1 if one does not, 2 if the server could not be asked."""
    parser = argparse.ArgumentParser(
        prog="python -m localcluster.demo.stream",
        description="Stream a chat completion with three tool calls from a server that runs the stand-in model, "
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
