"""The server under test where the model is gpt-oss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemmaserve_parser.regressions import server
from gemmaserve_parser.vllm_harmony import HarmonyStage, ended
from gemmaserve_parser.vllm_stage import Script, Stage

if TYPE_CHECKING:
    from gemmaserve_parser.replay import Case


class Server(server.Server):
    """The installed vLLM's chat server as it reads gpt-oss, whatever its parser is called."""

    def stage(self, case: Case) -> Stage:
        """The server, with an encoding that knows the case's texts."""
        return HarmonyStage(case.marker_ids, case.decode)

    def script(self, case: Case, mode: str) -> Script:
        """What the engine says for a case in one mode."""
        return Script([ended(case, case.deltas(mode))], case.finish)
