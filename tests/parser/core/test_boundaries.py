"""Where calls, content and reasoning begin and end."""

import pytest

CALL = "<|tool_call>call:f{a:1}<tool_call|>"
TWO = "<|tool_call>call:g{b:2}<tool_call|>"
MARKUP = "<|tool_call>call:g{}<tool_call|><turn|>"
F = ("f", {"a": 1})
G = ("g", {"b": 2})
THOUGHT = "<|channel>thought\nhm<channel|>"


@pytest.fixture(scope="module")
def tools(tool):
    return [tool("f"), tool("g")]


@pytest.mark.parametrize(
    ("text", "calls", "content"),
    [
        # Text around calls.
        (f"Before. {CALL} between {TWO} after.", [F, G], "Before. between after."),
        (f"Before.{CALL} {TWO}\nAfter.", [F, G], "Before. After."),
        (f"{CALL}\n\n{TWO}\n", [F, G], ""),
        (f"\n{CALL}", [F], ""),
        ("\n Hi \n", [], "\n Hi \n"),
        (CALL + CALL, [F, F], ""),
        # Restarts: a balanced body is a call, an unfinished one is dropped.
        ("<|tool_call>call:f{a:1}" + TWO, [F, G], ""),
        ("<|tool_call>call:f{a:" + TWO, [G], ""),
        ("<|tool_call>call:f" + TWO, [G], ""),
        ("<|tool_call>" + TWO, [G], ""),
        # Extra and missing close markers.
        (f"{CALL}<tool_call|><tool_call|>Done.", [F], "Done."),
        ("<tool_call|>Done.", [], "Done."),
        ("<|tool_call>call:f{a:1}", [F], ""),
        ("<|tool_call>call:f(a=1)", [F], ""),
        ("<|tool_call>call:f", [("f", {})], ""),
        ("<|tool_call>call:f{a:1}<turn|>", [F], ""),
        ("<|tool_call>call:f{a:1}<eos>", [F], ""),
        ("<|tool_call>call:f{a:1", [], "call:f{a:1"),
        ("<|tool_call>call:f{a:[1}", [], "call:f{a:[1}"),
        ("<|tool_call>call:f{a:§x", [], 'call:f{a:"x'),
        # A string that was never closed, the call was.
        ("<|tool_call>call:f{a:§x}<tool_call|> Done.", [("f", {"a": "x"})], "Done."),
        ("<|tool_call>call:f{a:[§x)]}<tool_call|>", [("f", {"a": ["x)"]})], ""),
        ("<|tool_call>call:f{a:§x<tool_call|> Done.", [], 'call:f{a:"x Done.'),
        # Hallucinated responses.
        (f"{CALL}<|tool_response>response:f{{v:1}}<tool_response|>So it is 1.", [F], ""),
        (f"{CALL}<|tool_response><|tool_response>", [F], ""),
        (f"<|tool_call>call:f{{a:1}}<|tool_response>{TWO}", [F], ""),
        # Markup as data and in prose.
        (
            f"<|tool_call>call:f{{a:§{MARKUP}§}}<tool_call|>",
            [("f", {"a": MARKUP})],
            "",
        ),
        ("The <|tool_call> token starts a call. Bye.", [], "The  token starts a call. Bye."),
        (f"The <|tool_call> token. {CALL}", [F], "The  token. "),
        ("a § b", [], 'a " b'),
        # Other special tokens.
        ("<bos>done<turn|><eos>", [], "done"),
        ("<pad>" * 40, [], ""),
        # A drifted opener: only a declared name, only with a close marker.
        ("<|tool_call|>call:f{a:1}<tool_call|>", [F], ""),
        ("<|tool_call|>call:h{a:1}<tool_call|>", [], "<|tool_call|>call:h{a:1}"),
        ("Write <|tool_call|>call:f{a:1} so.", [], "Write <|tool_call|>call:f{a:1} so."),
        # No opener: only a declared name, only where content starts, only with nothing after it.
        ("call:f{a:1}", [F], ""),
        (" \ncall:f(a=1)\n", [F], ""),
        ("call:f{a:1}<tool_call|>Done.", [F], "Done."),
        (f"{CALL}call:g{{b:2}}<tool_call|>", [F, G], ""),
        ("call:f{a:1} is a call", [], "call:f{a:1} is a call"),
        ("Use call:f{a:1}", [], "Use call:f{a:1}"),
        ("`call:f{a:1}`", [], "`call:f{a:1}`"),
        ("call:h{a:1}", [], "call:h{a:1}"),
        ("call:f{a:1", [], "call:f{a:1"),
        ("call:", [], "call:"),
        ("call: me", [], "call: me"),
        # Less than a marker.
        ("x < 5 ok <b>", [], "x < 5 ok <b>"),
        ("a <", [], "a <"),
        (f"{CALL}<|tool_call", [F], ""),
        ("", [], ""),
    ],
)
def test_at_a_natural_end(scan, tools, text, calls, content):
    answer = scan(text, tools)
    assert (answer.calls, answer.content.split()) == (calls, content.split())
    assert answer.reasoning == ""


@pytest.mark.parametrize(
    ("text", "calls", "content"),
    [
        ("<|tool_call>call:f{a:§half of the te", [], ""),
        ("<|tool_call>call:f{a:1}", [], ""),
        ("<|tool_call>call:f", [], ""),
        ("<|tool_call>", [], ""),
        (f"{CALL}<|tool_call>call:g{{b", [F], ""),
        (f"Hi. {CALL} Th", [F], "Hi. Th"),
        ("call:f{a:1", [], "call:f{a:1"),
        ("call:f{a:1}", [], "call:f{a:1}"),
        ("<|tool_call>call:f{a:§x}<tool_call|>", [], ""),
    ],
)
@pytest.mark.parametrize("finish", ["length", "abort"])
def test_truncation_is_not_completion(scan, tools, text, calls, content, finish):
    answer = scan(text, tools, finish=finish)
    assert (answer.calls, answer.content.split()) == (calls, content.split())


@pytest.mark.parametrize(
    ("text", "calls", "content", "reasoning"),
    [
        (f"{THOUGHT}Hi", [], "Hi", "hm"),
        (f"{THOUGHT}{CALL}{TWO}", [F, G], "", "hm"),
        ("<|channel>thought\na<channel|><|channel>thought\nb<channel|>Hi", [], "Hi", "ab"),
        (f"---\n{THOUGHT}Hi", [], "---\nHi", "hm"),
        (f"{CALL}{THOUGHT}Hi", [F], "Hi", "hm"),
        ("<|channel>thought\n<channel|>Hi", [], "Hi", ""),
        ("<|channel>thought<channel|>Hi", [], "Hi", ""),
        ("<|channel>thoughtful<channel|>Hi", [], "Hi", "thoughtful"),
        ("<|channel>thought\nhm", [], "", "hm"),
        ("<|channel>thou", [], "", "thou"),
        ("<|channel>thought\nhm<turn|>", [], "", "hm"),
        ("Hi<channel|> there", [], "Hi there", ""),
        # A call while the channel is open; what follows it is thought only if the channel is then closed.
        (f"<|channel>thought\nhm {CALL}", [F], "", "hm "),
        (f"<|channel>thought\nhm {CALL}\n{TWO}\n", [F, G], "", "hm "),
        (f"<|channel>thought\nhm {CALL}on<channel|>Hi", [F], "Hi", "hm on"),
        (f"<|channel>thought\nhm {CALL}Hi", [F], "Hi", "hm "),
        # Without ids only a whole call of a declared tool is one in a thought.
        (
            "<|channel>thought\na <|tool_call>call:x{}<tool_call|> b<channel|>Hi",
            [],
            "Hi",
            "a <|tool_call>call:x{}<tool_call|> b",
        ),
        ("<|channel>thought\na <|tool_call> b<channel|>Hi", [], "Hi", "a <|tool_call> b"),
        ("<|channel>thought\na <|tool_call>call:f{<channel|>Hi", [], "Hi", "a <|tool_call>call:f{"),
        # A bare call straight after a thought.
        (f"{THOUGHT}call:f{{a:1}}", [F], "", "hm"),
        ("<|channel>thought\ncall:f{a:1}<channel|>Hi", [], "Hi", "call:f{a:1}"),
        ("<|channel>thought\nhm<|tool_response>x", [], "", "hm"),
    ],
)
def test_reasoning(scan, tools, text, calls, content, reasoning):
    answer = scan(text, tools)
    assert (answer.calls, answer.content, answer.reasoning) == (calls, content, reasoning)


@pytest.mark.parametrize(
    ("text", "finish", "content", "reasoning"),
    [
        ("plan<channel|>Answer", "stop", "Answer", "plan"),
        ("thought\nplan<channel|>Answer", "stop", "Answer", "plan"),
        ("<|channel>thought\nplan<channel|>Answer", "stop", "Answer", "plan"),
        # Never closed: an answer when it is short and whole, else a thought.
        ("The answer is 4.", "stop", "The answer is 4.", ""),
        ("The answer is", "length", "", "The answer is"),
        ("long " * 200, "stop", "", "long " * 200),
        ("", "stop", "", ""),
    ],
)
def test_a_channel_that_the_prompt_opened(scan, tools, text, finish, content, reasoning):
    answer = scan(text, tools, finish=finish, in_reasoning=True)
    assert (answer.content, answer.reasoning) == (content, reasoning)


def test_without_a_reasoning_parser_channels_are_content_as_they_stand(scan, tools):
    text = f"thought\nx<channel|>Hi {THOUGHT}"
    assert scan(text, tools, reasoning=False, in_reasoning=True) == ([], text, "")
    assert scan(THOUGHT + CALL, tools, reasoning=False) == ([F], THOUGHT, "")


@pytest.mark.parametrize(
    ("settings", "calls"), [({"calls": False}, []), ({"first_call_only": True}, [F]), ({}, [F, G])]
)
def test_calls_that_the_request_does_not_want_are_dropped_and_the_text_stays(scan, tools, settings, calls):
    answer = scan(f"Hello. {CALL} and {TWO} bye", tools, **settings)
    assert (answer.calls, answer.content.split()) == (calls, ["Hello.", "and", "bye"])


def test_without_calls_what_is_no_call_stays_content(scan, tools):
    assert scan("The <|tool_call> token", tools, calls=False).content == "The  token"
    assert scan("call:f{a:1}", tools, calls=False).content == "call:f{a:1}"
    assert scan("<|tool_call|>call:f{a:1}<tool_call|>", tools, calls=False).content == "<|tool_call|>call:f{a:1}"


@pytest.mark.parametrize(
    ("text", "content", "reasoning"),
    [
        ("thought\nlet me see<channel|>Four.", "Four.", "let me see"),
        ("thought\nlet me see", "thought\nlet me see", ""),
        ("thoughtful people say so", "thoughtful people say so", ""),
        ("though", "though", ""),
    ],
)
def test_a_thought_whose_channel_was_not_opened(scan, text, content, reasoning):
    found = scan(text, [])
    assert (found.content, found.reasoning) == (content, reasoning)
