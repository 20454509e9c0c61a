"""Runs sessions with a Python client and prints what its user got of each; runs in the clients' own environment.

    python_clients.py CLIENT URL < scenarios.json > outcomes.jsonl

A session: the prompt with the tools is sent, the answer is read as the client hands it out, a result for each call
goes back, and the text that follows ends it.
"""

from __future__ import annotations

import json
import sys
import traceback
from importlib import import_module  # of a client only where it is used: each takes seconds to import
from pathlib import Path

RESULT = "done"
MODEL = "gemma-4"
LIMITS = {"api_key": "none", "timeout": 200, "max_retries": 0}


class OpenAIChat:
    """`chat.completions.create(stream=True)` and its users' own loop: fragments are put together by index."""

    def __init__(self, url, scenario):
        self.max_tokens = scenario["max_tokens"]
        self.client = import_module("openai").OpenAI(base_url=f"{url}/v1", **LIMITS)
        self.tools = [{"type": "function", "function": tool} for tool in scenario["tools"]]
        self.messages = [{"role": "user", "content": scenario["prompt"]}]

    def ask(self):
        text, calls, finish = "", {}, None
        stream = self.client.chat.completions.create(
            model=MODEL, messages=self.messages, tools=self.tools, stream=True, max_tokens=self.max_tokens
        )
        for chunk in stream:
            for choice in chunk.choices:
                text += choice.delta.content or ""
                finish = choice.finish_reason or finish
                for delta in choice.delta.tool_calls or []:
                    call = calls.setdefault(delta.index, {"id": None, "name": "", "arguments": ""})
                    call["id"] = delta.id or call["id"]
                    call["name"] += delta.function.name or ""
                    call["arguments"] += delta.function.arguments or ""
        return text, [calls[index] for index in sorted(calls)], finish

    def answer(self, text, calls):
        self.messages.append(
            {
                "role": "assistant",
                "content": text or None,
                "tool_calls": [
                    {
                        "id": call["id"],
                        "type": "function",
                        "function": {"name": call["name"], "arguments": call["arguments"]},
                    }
                    for call in calls
                ],
            }
        )
        self.messages += [{"role": "tool", "tool_call_id": call["id"], "content": RESULT} for call in calls]


class OpenAIChatHelper(OpenAIChat):
    """`chat.completions.stream()`: the client's own accumulation."""

    def ask(self):
        try:
            with self.client.chat.completions.stream(
                model=MODEL, messages=self.messages, tools=self.tools, max_tokens=self.max_tokens
            ) as stream:
                for _event in stream:
                    pass
                choice = stream.get_final_completion().choices[0]
        except import_module("openai").LengthFinishReasonError:
            return "", [], "length"  # how the helper tells its user of an answer that was cut
        calls = [
            {"id": call.id, "name": call.function.name, "arguments": call.function.arguments}
            for call in choice.message.tool_calls or []
        ]
        return choice.message.content or "", calls, choice.finish_reason


class OpenAIResponses:
    """`responses.stream()`."""

    def __init__(self, url, scenario):
        self.max_tokens = scenario["max_tokens"]
        self.client = import_module("openai").OpenAI(base_url=f"{url}/v1", **LIMITS)
        self.tools = [{"type": "function", "strict": False, **tool} for tool in scenario["tools"]]
        self.input = [{"role": "user", "content": scenario["prompt"]}]

    def ask(self):
        with self.client.responses.stream(
            model=MODEL, input=self.input, tools=self.tools, max_output_tokens=self.max_tokens, store=False
        ) as stream:
            for _event in stream:
                pass
            final = stream.get_final_response()
        calls = [
            {"id": item.call_id, "name": item.name, "arguments": item.arguments}
            for item in final.output
            if item.type == "function_call"
        ]
        return final.output_text, calls, final.status

    def answer(self, text, calls):
        if text:
            self.input.append({"role": "assistant", "content": text})
        for call in calls:
            self.input.append(
                {
                    "type": "function_call",
                    "call_id": call["id"],
                    "name": call["name"],
                    "arguments": call["arguments"],
                }
            )
        self.input += [{"type": "function_call_output", "call_id": call["id"], "output": RESULT} for call in calls]


class AnthropicMessages:
    """`messages.stream()`."""

    def __init__(self, url, scenario):
        self.max_tokens = scenario["max_tokens"]
        self.client = import_module("anthropic").Anthropic(base_url=url, **LIMITS)
        self.tools = [
            {"name": tool["name"], "description": tool["description"], "input_schema": tool["parameters"]}
            for tool in scenario["tools"]
        ]
        self.messages = [{"role": "user", "content": scenario["prompt"]}]

    def ask(self):
        with self.client.messages.stream(
            model=MODEL, messages=self.messages, tools=self.tools, max_tokens=self.max_tokens
        ) as stream:
            for _event in stream:
                pass
            final = stream.get_final_message()
        self.content = [block.to_dict() for block in final.content]
        text = "".join(block.text for block in final.content if block.type == "text")
        calls = [
            {"id": block.id, "name": block.name, "arguments": json.dumps(block.input)}
            for block in final.content
            if block.type == "tool_use"
        ]
        return text, calls, final.stop_reason

    def answer(self, _text, calls):
        self.messages.append({"role": "assistant", "content": self.content})
        results = [{"type": "tool_result", "tool_use_id": call["id"], "content": RESULT} for call in calls]
        self.messages.append({"role": "user", "content": results})


CLIENTS = {
    "openai-chat": OpenAIChat,
    "openai-chat-helper": OpenAIChatHelper,
    "openai-responses": OpenAIResponses,
    "anthropic-messages": AnthropicMessages,
}


def run(client, url, scenario):
    """The session; whatever the client raises is part of what its user got."""
    outcome = {"text": "", "calls": [], "finish": None, "answer": None, "error": None}
    try:
        session = CLIENTS[client](url, scenario)
        outcome["text"], outcome["calls"], outcome["finish"] = session.ask()
        if outcome["calls"]:
            session.answer(outcome["text"], outcome["calls"])
            outcome["answer"], _calls, _finish = session.ask()
    except Exception as error:  # noqa: BLE001
        outcome["error"] = f"{type(error).__name__}: {str(error) or _where(error)}"
    return outcome


def _where(error):
    """The client's line that raised, for an error without a message."""
    raised = traceback.extract_tb(error.__traceback__)[-1]
    return f"{raised.line} ({Path(raised.filename).name}, line {raised.lineno})"


if __name__ == "__main__":
    for scenario in json.load(sys.stdin):
        print(json.dumps(run(sys.argv[1], sys.argv[2], scenario)), flush=True)
