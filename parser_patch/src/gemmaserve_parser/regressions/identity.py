"""That it is our parser, under both names, that a server gets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gemmaserve_parser.regressions.cases import THREE_READS, case, expect
from gemmaserve_parser.regressions.registry import regression

if TYPE_CHECKING:
    from gemmaserve_parser.regressions.server import Server


@regression
def the_server_hands_out_our_parser(server: Server) -> None:
    """VLLM's registry and its server give our classes for the name, not vLLM's own."""
    stage = server.stage(case(THREE_READS))
    for role, handed_out in (("tool parser", stage.tool_parser), ("server parser", stage.parser)):
        expect(handed_out.__module__.partition(".")[0], "gemmaserve_parser", f"the {role} for {server.parser} is from")


@regression
def the_model_is_left_to_its_own_syntax(server: Server) -> None:
    """A required or named tool turns no guided JSON on, and markers stay in the text."""
    for choice in ("auto", "required", {"type": "function", "function": {"name": "read_file"}}):
        request = server.stage(case(THREE_READS)).adjusted({"tools": case("").tools, "tool_choice": choice})
        expect(request.structured_outputs, None, f"structured outputs with tool_choice {choice}")
        expect(request.skip_special_tokens, False, f"skip_special_tokens with tool_choice {choice}")


@regression
def another_model_is_refused(server: Server) -> None:
    """A tokenizer without Gemma 4's markers is refused when the parser is made, not when a call is lost."""
    stage = server.stage(case(THREE_READS))
    try:
        stage.tool_parser(type(stage.tokenizer)({}, str))
    except RuntimeError:
        return
    raise AssertionError("expected an error for a tokenizer without <|tool_call>, got a parser")
