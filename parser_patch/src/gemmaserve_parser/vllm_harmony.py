"""The installed vLLM's own chat server of gpt-oss with a scripted engine and a stand-in for the encoding.

See `vllm_stage`. The stand-in makes replays possible where gpt-oss's vocabulary, which vLLM downloads, is not at hand.
"""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any

from gemmaserve_parser.core.harmony_messages import CLOSERS, RETURN
from gemmaserve_parser.replay import NON_STREAMING, Delta
from gemmaserve_parser.vllm_replay import body, gather, whole
from gemmaserve_parser.vllm_stage import Script, Stage, Tokenizer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gemmaserve_parser.replay import Case, Result

TOOL_PARSER, REASONING_PARSER = "openai", "openai_gptoss"


class StandInEncoding:
    """What our adapters ask of gpt-oss's encoding, over a case's tokens."""

    def __init__(self, marker_ids: Mapping[str, int], decode: Callable[[int], str]) -> None:
        self._marker_ids = marker_ids
        self._decode = decode

    def encode(self, text: str, **_: Any) -> list[int]:
        """The id of a marker."""
        return [self._marker_ids[text]]

    def decode(self, tokens: Sequence[int], **_: Any) -> str:
        """The text of ids."""
        return "".join(self._decode(token) for token in tokens)


class HarmonyStage(Stage):
    """A chat server of the installed vLLM for gpt-oss."""

    def __init__(self, marker_ids: Mapping[str, int], decode: Callable[[int], str]) -> None:
        utils: Any = importlib.import_module("vllm.entrypoints.openai.parser.harmony_utils")
        utils._harmony_encoding = StandInEncoding(marker_ids, decode)  # noqa: SLF001  (where vLLM keeps it)
        super().__init__(Tokenizer(marker_ids, decode), TOOL_PARSER, REASONING_PARSER)
        manager = importlib.import_module("vllm.parser").ParserManager
        self.parser = manager.get_parser(TOOL_PARSER, REASONING_PARSER, True, **_is_harmony(manager))

    def _server(self) -> Any:
        server = super()._server()
        server.use_harmony = True
        return server


def _is_harmony(manager: Any) -> dict[str, bool]:
    return {"is_harmony": True} if "is_harmony" in inspect.signature(manager.get_parser).parameters else {}


def replay(case: Case, mode: str) -> Result:
    """Run a case in one mode, as a chat completion."""
    stage = HarmonyStage(case.marker_ids, case.decode)
    script = Script([ended(case, case.deltas(mode))], case.finish)
    if mode == NON_STREAMING:
        return whole(stage.complete(body(case), script))
    return gather(stage.stream(body(case), script))


def ended(case: Case, deltas: Sequence[Delta]) -> list[Delta]:
    """The deltas as vLLM gives them: a natural end is a token, which the ids hold and the text does not."""
    if case.finish != "stop" or (case.tokens and case.decode(case.tokens[-1]) in CLOSERS):
        return [*deltas]
    stop = str(case.request.get("stop_token") or RETURN)
    last = deltas[-1]
    return [*deltas[:-1], Delta(last.text, (*last.token_ids, case.marker_ids[stop]))]
