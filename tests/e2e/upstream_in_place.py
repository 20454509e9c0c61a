"""For the end-to-end test alone: a plugin that has vLLM's own Gemma 4 parsers answer to our name.

`Containerfile.upstream-parser` puts it in the place of our plugin. What the server then streams is what it streams
without GemmaServe, and it starts, because the name that the operator asks for is there.
"""

from vllm.reasoning import ReasoningParserManager
from vllm.tool_parsers import ToolParserManager

OUR_NAME = "gemma4_atomic"
UPSTREAMS_NAME = "gemma4"


def register() -> None:
    """Register upstream's tool and reasoning parsers, wherever vLLM says they are, under our name too."""
    for manager in (ToolParserManager, ReasoningParserManager):
        manager.register_lazy_module(OUR_NAME, *manager.lazy_parsers[UPSTREAMS_NAME])
