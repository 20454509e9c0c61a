"""A pytest plugin: our Gemma 4 parsers in place of vLLM's, where vLLM's own tests import them.

The server parser keeps vLLM's engine class as a base, because its tests find parsers by that base; what it reads and
says is ours.
"""

from types import SimpleNamespace

from vllm.parser import gemma4
from vllm.parser.engine import registered_adapters
from vllm.tool_parsers import gemma4_engine_tool_parser

from gemmaserve_parser.adapters.answer import Answer
from gemmaserve_parser.adapters.parsers import AtomicParser
from gemmaserve_parser.adapters.vllm_0_24 import Gemma4AtomicToolParser


class AtomicEngine(AtomicParser, gemma4.Gemma4Parser):
    """vLLM's engine class with our reading.

    Like vLLM's it reads thoughts whether or not a reasoning parser is named. vLLM's tests make it with tools and ask it
    with a request that has none, which a server never does: such a request counts as one with those tools.
    """

    def __init__(self, tokenizer, tools=None, *args, **kwargs):
        super().__init__(tokenizer, tools, *args, **kwargs)
        self._declared = tools

    def _new_answer(self, request, prompt_token_ids):
        if not getattr(request, "tools", None):
            fields = {name: getattr(request, name, None) for name in ("parallel_tool_calls", "include_reasoning")}
            request = SimpleNamespace(tools=self._declared or [_ANY], tool_choice="auto", **fields)
        prompt = prompt_token_ids or self._prompt_token_ids
        return Answer(self._tokenizer, request, reasoning=True, prompt_token_ids=prompt)


_ANY = {"type": "function", "function": {"name": "any"}}

gemma4_engine_tool_parser.Gemma4EngineToolParser = Gemma4AtomicToolParser
gemma4.Gemma4Parser = registered_adapters.Gemma4Parser = AtomicEngine
