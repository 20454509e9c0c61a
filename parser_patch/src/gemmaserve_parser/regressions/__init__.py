"""Regressions that ship with the parser: what a server has to show before it gets traffic.

They run in the image that will serve, against the parser that its vLLM hands out for the name the server is started
with, through vLLM's own chat server (`vllm_stage`): no model, no GPU, no network, nothing written but the report.
"""

from gemmaserve_parser.regressions.command import main

__all__ = ["main"]
