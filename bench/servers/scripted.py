"""A vLLM logits processor by which the stand-in model knows a few questions and their answers. For stand-ins only.

    SCRIPT=script.json vllm serve ... --logits-processors scripted:ScriptedDecoding

`script.json` is a list of `{"question": [ids], "answer": [ids], "list": [ids], "object": [ids]}`. A request whose
prompt holds a question's tokens gets its answer, token by token, so that requests are those of any client, without a
field of ours. Where vLLM holds the model to a JSON schema, as some parsers have it do for a forced tool, the answer is
what the schema asks for, as a real model's would be: a list of calls (`required`) or the arguments alone (a named
tool). What a request itself names in `vllm_xargs` (see `forced_decoding`) goes first. This file runs in vLLM's engine
process.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from forced_decoding import ForcedDecoding


class ScriptedDecoding(ForcedDecoding):
    def __init__(self, vllm_config, device, is_pin_memory):
        super().__init__(vllm_config, device, is_pin_memory)
        script = json.loads(Path(os.environ["SCRIPT"]).read_text(encoding="utf-8"))
        self._script = [(_text(each["question"]), each) for each in script]

    def words(self, params, prompt):
        forced = super().words(params, prompt)
        if forced is not None or prompt is None:
            return forced
        asked = _text(prompt)
        found = next((answers for question, answers in self._script if question in asked), None)
        return found and found[_form(params)]


def _form(params):
    """In which of its forms the answer is given: the model's own words, or JSON where vLLM holds it to a schema."""
    schema = params.structured_outputs and params.structured_outputs.json
    if not schema:
        return "answer"
    kind = (json.loads(schema) if isinstance(schema, str) else schema).get("type")
    return "list" if kind == "array" else "object"


def _text(ids):
    """Token ids as a string of one character each, in which a question is found fast."""
    return "".join(map(chr, ids))
