"""Answers as servers write them, and a scripted stand-in for a server that sends whatever a test says."""

import asyncio
import copy
import json
import threading
from types import SimpleNamespace

import pytest

from toolstream.core.exchange import CHAT, MESSAGES, RESPONSES, Chunk, Exchange
from toolstream.core.scenarios import CUT_MAX_TOKENS, SCENARIOS, Question

SSE = "text/event-stream"
JSON = "application/json"
CALL_ID = "call_f3a91c20"


def chat_chunk(delta, finish_reason=None):
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def chat_call(name, arguments, *, index=0, id_=None):
    """A whole call as one delta has it."""
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": id_ or f"{CALL_ID}{index}", "type": "function", "function": function}


def chat_stream(*calls, text="", finish_reason="tool_calls"):
    """Chunks of a chat completion that keeps every rule of the contract."""
    chunks = [chat_chunk({"role": "assistant", "content": ""})]
    chunks += [chat_chunk({"content": text})] if text else []
    chunks += [chat_chunk({"tool_calls": [call]}) for call in calls]
    return [*chunks, chat_chunk({}, finish_reason), "[DONE]"]


def chat_whole(*calls, text="", finish_reason="tool_calls"):
    bare = [{key: value for key, value in call.items() if key != "index"} for call in calls]
    message = {"role": "assistant", "content": text or None, "tool_calls": bare}
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish_reason}]}


def responses_item(name, arguments, index=0):
    return {"type": "function_call", "id": f"fc_{index}", "call_id": f"{CALL_ID}{index}", "name": name,
            "arguments": arguments}  # fmt: skip


def responses_stream(*calls, text=""):
    events = [{"type": "response.created", "response": {"status": "in_progress"}}]
    events += [{"type": "response.output_text.delta", "output_index": 9, "delta": text}] if text else []
    for index, (name, arguments) in enumerate(calls):
        at = {"output_index": index, "item_id": f"fc_{index}"}
        events += [
            {"type": "response.output_item.added", **at, "item": responses_item(name, "", index)},
            {"type": "response.function_call_arguments.delta", **at, "delta": arguments},
            {"type": "response.function_call_arguments.done", **at, "arguments": arguments},
            {"type": "response.output_item.done", **at, "item": responses_item(name, arguments, index)},
        ]
    return [*events, {"type": "response.completed", "response": {"status": "completed"}}]


def responses_whole(*calls, text=""):
    output = [{"type": "message", "content": [{"type": "output_text", "text": text}]}] if text else []
    output += [responses_item(name, arguments, index) for index, (name, arguments) in enumerate(calls)]
    return {"status": "completed", "error": None, "output": output}


def messages_stream(*calls, text=""):
    events = [{"type": "message_start", "message": {"role": "assistant", "content": []}}]
    if text:
        events += [
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
            {"type": "content_block_stop", "index": 0},
        ]
    for index, (name, arguments) in enumerate(calls, start=int(bool(text))):
        block = {"type": "tool_use", "id": f"toolu_f3a91c20{index}", "name": name, "input": {}}
        events += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_delta", "index": index,
             "delta": {"type": "input_json_delta", "partial_json": arguments}},
            {"type": "content_block_stop", "index": index},
        ]  # fmt: skip
    reason = "tool_use" if calls else "end_turn"
    return [*events, {"type": "message_delta", "delta": {"stop_reason": reason}}, {"type": "message_stop"}]


def messages_whole(*calls, text=""):
    content = [{"type": "text", "text": text}] if text else []
    content += [
        {"type": "tool_use", "id": f"toolu_f3a91c20{index}", "name": name, "input": json.loads(arguments)}
        for index, (name, arguments) in enumerate(calls)
    ]
    return {"type": "message", "content": content, "stop_reason": "tool_use" if calls else "end_turn"}


def right_answer(endpoint, streaming, calls, text=""):
    """The answer that keeps every rule: events of a stream, or one body."""
    if endpoint == CHAT:
        made = [chat_call(name, arguments, index=index) for index, (name, arguments) in enumerate(calls)]
        build = chat_stream if streaming else chat_whole
        return build(*made, text=text, finish_reason="tool_calls" if calls else "stop")
    builders = {RESPONSES: (responses_whole, responses_stream), MESSAGES: (messages_whole, messages_stream)}
    return builders[endpoint][streaming](*calls, text=text)


def expected_calls(scenario):
    return [(call.name, json.dumps(call.arguments, ensure_ascii=False)) for call in scenario.expected]


def exchange(events, *, endpoint=CHAT, streaming=True, **changes):
    """What a client would have received of these events (or of this body)."""
    texts = [event if isinstance(event, str) else json.dumps(event, ensure_ascii=False) for event in events]
    fields = {
        "status": 200,
        "content_type": SSE if streaming else JSON,
        "chunks": [Chunk(text, 0.01 * number) for number, text in enumerate(texts, start=1)],
        "seconds": 1.0,
    }
    return Exchange(endpoint, streaming, **(fields | changes))


def question(name="one-call", *, endpoint=CHAT, streaming=True, tool_choice="auto"):
    scenario = next(each for each in SCENARIOS if each.name == name)
    return Question(scenario, endpoint, streaming, tool_choice)


@pytest.fixture(scope="session")
def make():
    """The builders above, under one name."""
    names = (
        chat_chunk, chat_call, chat_stream, chat_whole, responses_stream, responses_whole, messages_stream,
        messages_whole, right_answer, expected_calls, exchange, question,
    )  # fmt: skip
    return SimpleNamespace(**{each.__name__: each for each in names}, copy=copy.deepcopy)


class ScriptedServer:
    """A stand-in for a model server: it knows HTTP as far as a test needs it, and says what its script says.

    Attributes:
        script: `async def script(request, send)`; `request` has `path`, `headers` and `body`, `send(bytes)` writes.
            The connection closes when it returns; whatever it raises breaks the connection off.
        small: JSON answers by path, or functions of the request's body; given before the script is asked.
        requests: Every request that reached the script.
    """

    def __init__(self):
        self.script = None
        self.small = {"/v1/models": {"data": [{"id": "stand-in"}]}}
        self.requests = []
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._connections = set()

    def start(self):
        self._thread.start()
        server = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._serve, "127.0.0.1", 0), self._loop)
        self._server = server.result(timeout=5)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def stop(self):
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(timeout=5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        self._loop.close()

    async def _end(self):
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader, writer):
        task = asyncio.current_task()
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

        async def send(data):
            writer.write(data)
            await writer.drain()

        try:
            request = await self._read(reader)
            if request.path in self.small:
                small = self.small[request.path]
                await send(http(json.dumps(small(request.body) if callable(small) else small)))
            elif self.script is None or request.path in {"/version", "/v1/models", "/detokenize"}:
                await send(http("{}", status="404 Not Found"))
            else:
                self.requests.append(request)
                await self.script(request, send)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            writer.close()

    @staticmethod
    async def _read(reader):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        data = await reader.readexactly(int(headers.get("content-length", 0)))
        return SimpleNamespace(path=first.split()[1], headers=headers, body=json.loads(data) if data else None)


def http(body, *, content_type=JSON, status="200 OK"):
    data = body.encode() if isinstance(body, str) else body
    head = f"HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\ncontent-length: {len(data)}\r\nconnection: close\r\n"
    return head.encode() + b"\r\n" + data


def sse(events):
    texts = [event if isinstance(event, str) else json.dumps(event, ensure_ascii=False) for event in events]
    return "".join(f"data: {text}\n\n" for text in texts).encode()


STREAM_HEAD = f"HTTP/1.1 200 OK\r\ncontent-type: {SSE}\r\nconnection: close\r\n\r\n".encode()


def answers(answer):
    """A script that gives one answer: a list of events as a stream, an object as a body."""

    async def script(_request, send):
        await send(STREAM_HEAD + sse(answer) if isinstance(answer, list) else http(json.dumps(answer)))

    return script


async def good_model(request, send):
    """A script that does what each scenario asks for, in each protocol, as the contract has it."""
    endpoint = {"chat": CHAT, "responses": RESPONSES, "messages": MESSAGES}[request.path.split("/")[2].split("_")[0]]
    text = json.dumps(request.body, ensure_ascii=False)
    scenario = next(each for each in SCENARIOS if json.dumps(each.prompt, ensure_ascii=False)[1:-1] in text)
    choice = request.body["tool_choice"]
    cut = CUT_MAX_TOKENS in (request.body.get("max_tokens"), request.body.get("max_output_tokens"))
    silent = cut or choice in ("none", {"type": "none"})
    calls = [] if silent else expected_calls(scenario)
    said = "I am going to read it." if scenario.text_too or silent else ""
    await answers(right_answer(endpoint, request.body["stream"], calls, said))(request, send)


@pytest.fixture
def server():
    scripted = ScriptedServer()
    scripted.start()
    yield scripted
    scripted.stop()


@pytest.fixture(scope="session")
def scripts():
    """Ready scripts and their parts."""
    return SimpleNamespace(answers=answers, good_model=good_model, http=http, sse=sse, STREAM_HEAD=STREAM_HEAD)
