"""Exchanges as tokens, and which of those tokens are the model's own words."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources

import jinja2.sandbox
from tokenizers import Tokenizer

from localcluster.tinymodel.tokenizer import SPECIAL_TOKENS, words_document
from localcluster.tinymodel.training.conversations import Conversation

TURN, END_OF_TURN = SPECIAL_TOKENS["<|turn>"], SPECIAL_TOKENS["<turn|>"]
RESPONSE, END_OF_RESPONSE = SPECIAL_TOKENS["<|tool_response>"], SPECIAL_TOKENS["<tool_response|>"]
END_OF_CALL = SPECIAL_TOKENS["<tool_call|>"]


class Template:
    """The chat template, rendered as transformers and vLLM render it."""

    def __init__(self) -> None:
        environment = jinja2.sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        source = resources.files("localcluster.tinymodel").joinpath("chat_template.jinja").read_text(encoding="utf-8")
        self._template = environment.from_string(source)

    def render(self, exchange: Conversation, *, messages: int | None = None) -> str:
        """The text of an exchange, or of its first `messages` with the opening of the model's turn after them."""
        return self._template.render(
            messages=exchange.messages[:messages],
            tools=exchange.tools,
            enable_thinking=exchange.thinking,
            add_generation_prompt=messages is not None,
            bos_token="<bos>",  # noqa: S106
        )


@dataclass(frozen=True)
class Encoded:
    """Token ids, and for each whether the model is to say it."""

    ids: list[int]
    own: list[bool]


class Encoder:
    """Turns exchanges into tokens."""

    def __init__(self) -> None:
        self.template = Template()
        self.tokenizer = Tokenizer.from_str(json.dumps(words_document()))
        self._model = self.tokenizer.encode("model").ids[0]

    def encode(self, exchange: Conversation) -> Encoded:
        """A whole exchange."""
        ids = self.ids(self.template.render(exchange).rstrip("\n"))
        own = self._own(ids)
        if exchange.thinking:
            # The template drops earlier thoughts, so only the last request's answers are what the model would say.
            last = max(i for i in range(len(ids) - 1) if ids[i] == TURN and ids[i + 1] != self._model)
            own = [mine and position > last for position, mine in enumerate(own)]
        return Encoded(ids, own)

    def ids(self, text: str) -> list[int]:
        """Token ids of a text with markers."""
        return list(self.tokenizer.encode(text, add_special_tokens=False).ids)

    def _own(self, ids: list[int]) -> list[bool]:
        """The model's turn without the tools' responses; the marker that hands over to them is the model's."""
        own, mine, skip = [], False, 0
        for position, token in enumerate(ids):
            if token == TURN:
                mine, skip = ids[position + 1] == self._model, 3
            if token == RESPONSE:
                own.append(mine and ids[position - 1] == END_OF_CALL)
                mine = False
                continue
            own.append(mine and skip <= 0)
            skip -= 1
            if token == END_OF_TURN:
                mine = False
            elif token == END_OF_RESPONSE:
                mine = True
        return own
