"""The scanner by the contract's rules for Harmony, each input in three cuttings."""

import time

import pytest

from gemmaserve_parser.core.events import Content, Reasoning, ToolCall
from gemmaserve_parser.core.harmony import MARKERS, HarmonyScanner

CALL = "<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>"
NEXT = "<|start|>assistant"


def tool(name):
    return {"type": "function", "function": {"name": name}}


class TestMessages:
    def test_channels_become_reasoning_content_and_calls(self, scan):
        answer = scan(
            "<|channel|>analysis<|message|>Think.<|end|>"
            f"{NEXT}<|channel|>commentary<|message|>Let me look.<|end|>"
            f'{NEXT}{CALL}{{"city":"Zürich"}}<|call|>'
            f"{NEXT}<|channel|>final<|message|>Done.<|return|>"
        )
        assert answer.calls == [("get_weather", {"city": "Zürich"})]
        assert answer.reasoning == "Think."
        assert answer.content.split() == ["Let", "me", "look.", "Done."]

    def test_a_call_is_one_event_when_its_message_closes(self):
        scanner = HarmonyScanner([tool("get_weather")])
        assert scanner.feed(CALL + '{"city":') == []
        assert scanner.withholding
        assert scanner.feed('"é"}') == []
        assert scanner.feed("<|call|>") == [ToolCall("get_weather", '{"city": "é"}')]
        assert not scanner.withholding
        assert scanner.finish() == []
        assert scanner.finish() == []

    def test_text_streams_as_it_comes(self):
        scanner = HarmonyScanner([])
        assert scanner.feed("<|channel|>final<|message|>one ") == [Content("one ")]
        assert scanner.feed("two") == [Content("two")]

    def test_the_same_tool_twice_is_two_calls(self, scan):
        answer = scan(f'{CALL}{{"city":"A"}}<|call|>{NEXT}{CALL}{{"city":"B"}}<|call|>')
        assert answer.calls == [("get_weather", {"city": "A"}), ("get_weather", {"city": "B"})]

    @pytest.mark.parametrize("closer", ["<|call|>", "<|end|>", "<|return|>", f"{NEXT}", "<|channel|>"])
    def test_whatever_marker_ends_a_whole_call(self, scan, closer):
        assert scan(f'{CALL}{{"city":"A"}}{closer}').calls == [("get_weather", {"city": "A"})]

    def test_a_channel_marker_without_end_starts_the_next_message(self, scan):
        answer = scan("<|channel|>analysis<|message|>foo<|channel|>final<|message|>bar<|return|>")
        assert answer == ([], "bar", "foo")

    @pytest.mark.parametrize("role", ["functions.get_weather to=assistant", "user", "system"])
    def test_what_the_model_makes_others_say_is_dropped_to_the_end(self, scan, role):
        answer = scan(
            f'{CALL}{{"city":"A"}}<|call|><|start|>{role}<|channel|>commentary<|message|>{{"t":1}}<|end|>'
            f"{NEXT}<|channel|>final<|message|>It is 1.<|return|>"
        )
        assert answer == ([("get_weather", {"city": "A"})], "", "")


class TestHeaders:
    @pytest.mark.parametrize(
        "header",
        [
            " to=functions.get_weather<|channel|>commentary json",
            "<|channel|>analysis to=functions.get_weather <|constrain|>json",
            "<|channel|>commentary to=functions.get_weather<|constrain|>json",
            "<|channel|>commentary to=functions.get_weather to=functions.get_weather",
            " to=functions.get_weather<|channel|>commentary<|channel|>commentary json",
            "<|channel|>\u2013\u2013commentary to=functions.get_weather json",
            "<|channel|>commentary to=functions.get_weathercommentary json",
            "<|channel|>commentary to=functions.get_weather<|channel|>commentary to=functions.get_weather code",
            "<|channel|>commentary to=functions.functions.get_weather",
            "<|channel|>commentary to=get_weather",
            "<|channel|>commentary to=repo.get_weather",
            "<|channel|>commentary functions.get_weather json",
            "<|channel|>commentary to = functions.get_weather.",
            f"{NEXT}<|channel|>commentary to=functions.get_weather json",
            "<|start|>functions.get_weather<|channel|>commentary json",
        ],
    )
    def test_repeated_and_polluted_headers_give_the_right_name(self, scan, header):
        assert scan(header + '<|message|>{"city":"A"}<|call|>') == ([("get_weather", {"city": "A"})], "", "")

    def test_a_name_that_holds_a_channels_word_is_not_cut(self, scan):
        assert scan("<|channel|>commentary to=functions.final_report<|message|>{}<|call|>").calls == [
            ("final_report", {})
        ]

    def test_an_undeclared_function_is_a_call_as_written(self, scan):
        assert scan("<|channel|>commentary to=functions.no.such-tool<|message|>{}<|call|>").calls == [
            ("no.such-tool", {})
        ]

    @pytest.mark.parametrize("recipient", ["python", "browser.search", "container.exec", "browser.query", "assistant"])
    @pytest.mark.parametrize("channel", ["analysis", "commentary"])
    def test_other_recipients_are_no_calls_and_nobodys_text(self, scan, recipient, channel):
        answer = scan(
            f"<|channel|>{channel} to={recipient} code<|message|>print(1)<|call|>", tools=[tool("query"), tool("exec")]
        )
        assert answer == ([], "", "")

    def test_a_declared_tool_may_have_a_built_in_name(self, scan):
        text = '<|channel|>analysis to=python code<|message|>{"code":"1"}<|call|>'
        assert scan(text, tools=[tool("python")]).calls == [("python", {"code": "1"})]

    @pytest.mark.parametrize("header", ["<|channel|>final to=user", "<|channel|>commentary to=all", ""])
    def test_text_for_the_user_is_content(self, scan, header):
        assert scan(f"{header}<|message|>Hi<|return|>") == ([], "Hi", "")

    def test_a_missing_message_marker(self, scan):
        body = '{"city":"' + "x" * 2000 + '"}'
        header = CALL.removesuffix("<|message|>")
        assert scan(f"{header}{body}<|call|>").calls == [("get_weather", {"city": "x" * 2000})]
        assert scan("<|channel|>final Hi<|return|>").content == "Hi"
        assert scan("<|channel|>analysisHm<|end|>").reasoning == "Hm"
        assert scan("<|channel|>commentary to=functions.ping<|call|>").calls == [("ping", {})]
        assert scan("<|channel|>commentary to=functions.nope<|call|>").calls == []
        assert scan("<|channel|>commentary to=functions.ping").calls == []

    @pytest.mark.parametrize("length", [1, 511, 512, 513, 2000])
    def test_an_answer_without_any_markup_is_content(self, scan, length):
        assert scan("x" * length) == ([], "x" * length, "")

    @pytest.mark.parametrize(
        "text", ["final answer: 42", "set x to=5", "user said hi", "functions.x is one", "call it assistant"]
    )
    def test_prose_that_reads_like_a_header_is_content(self, scan, text):
        assert scan(text) == ([], text, "")
        assert scan(text, finish="length") == ([], text, "")

    def test_prose_before_the_first_marker_is_content(self, scan):
        assert scan("Hello<|channel|>final<|message|>you<|end|>").content.split() == ["Hello", "you"]
        assert scan("\u2013<|channel|>final<|message|>you<|end|>").content == "you"


class TestBodies:
    @pytest.mark.parametrize(
        ("body", "arguments"),
        [
            ("", {}),
            (" \n", {}),
            ("null", {}),
            ('{\n  "sql": "a\\nb"\n}', {"sql": "a\nb"}),
            ('{"sql": "a\nb"}', {"sql": "a\nb"}),
            ('{"a":1,"a":2}', {"a": 2}),
            ('"{\\"a\\":1}"', {"a": 1}),
            ('{"a":1}}', {"a": 1}),
            ('{"a":[{"b":"}"', {"a": [{"b": "}"}]}),
            ('{"a":NaN}', {"a": "NaN"}),
            ('{"a":"<b>"}', {"a": "<b>"}),
        ],
    )
    def test_arguments(self, scan, body, arguments):
        assert scan(f"{CALL}{body}<|call|>") == ([("get_weather", arguments)], "", "")

    def test_numbers_keep_their_digits_and_text_its_letters(self):
        scanner = HarmonyScanner([tool("f")])
        body = '{"n":123456789012345678901234567890,"x":1.10,"s":"\\u00e9é"}'
        (call,) = scanner.feed(f"<|channel|>commentary to=functions.f<|message|>{body}<|call|>")
        assert call.arguments == '{"n": 123456789012345678901234567890, "x": 1.10, "s": "éé"}'

    @pytest.mark.parametrize("body", ["Paris", "[1]", "3", '{"a":"x', "{'a':1}", '{"a":1} and more', '{"a":[}'])
    def test_what_is_no_object_is_content(self, scan, body):
        assert scan(f"{CALL}{body}<|call|>") == ([], body, "")
        assert scan(f"{CALL}{body}<|call|>", calls=False) == ([], "", "")

    def test_nested_too_deep_is_content(self, scan):
        body = '{"a":' + "[" * 5000 + "]" * 5000 + "}"
        assert scan(f"{CALL}{body}<|call|>") == ([], body, "")

    def test_the_next_message_restarts_an_unfinished_call(self, scan):
        assert scan(f'{CALL}{{"city":"<|start|>assistant{CALL}{{"city":"B"}}<|call|>') == (
            [("get_weather", {"city": "B"})],
            "",
            "",
        )


class TestEnds:
    @pytest.mark.parametrize("body", ["", '{"city":"A', '{"city":"A"}'])
    def test_a_truncated_body_gives_nothing(self, scan, body):
        assert scan(CALL + body, finish="length") == ([], "", "")

    @pytest.mark.parametrize(
        "header",
        [
            "<|start|>",
            "<|start|>assist",
            NEXT,
            f"{NEXT} to",
            f"{NEXT}<|channel|>",
            f"{NEXT}<|channel|>comment",
            f"{NEXT}<|channel|>commentary to=functions.get_w",
            f"{NEXT}{CALL.removesuffix('<|message|>')}",
        ],
    )
    def test_a_truncated_header_gives_nothing(self, scan, header):
        before = "<|channel|>analysis<|message|>Think.<|end|>"
        assert scan(before + header, finish="length") == ([], "", "Think.")
        assert scan(before + header, finish="stop") == ([], "", "Think.")

    @pytest.mark.parametrize("start", [" ", " to", " to=", " to=functions.get_w", "assistant", "<|channel|>commentary"])
    def test_a_truncated_first_header_gives_nothing(self, scan, start):
        assert scan(start, finish="length") == ([], "", "")

    def test_truncated_text_is_kept(self, scan):
        assert scan("<|channel|>final<|message|>The wea", finish="length").content == "The wea"
        assert scan("<|channel|>final<|message|>a <|en", finish="length").content == "a <|en"

    def test_a_balanced_call_at_a_natural_end_is_a_call(self, scan):
        assert scan(CALL + '{"city":"A"}').calls == [("get_weather", {"city": "A"})]

    def test_an_unbalanced_one_is_content(self, scan):
        assert scan(CALL + '{"city":"A"') == ([], '{"city":"A"', "")


class TestRequests:
    TWO = f'<|channel|>analysis<|message|>Hm.<|end|>{NEXT}{CALL}{{"n":1}}<|call|>{NEXT}{CALL}{{"n":2}}<|call|>'

    def test_no_calls_where_none_are_wanted(self, scan):
        assert scan(self.TWO, calls=False) == ([], "", "Hm.")

    def test_only_the_first_call_without_parallel_calls(self, scan):
        assert scan(self.TWO, first_call_only=True).calls == [("get_weather", {"n": 1})]

    def test_reasoning_that_is_not_wanted_is_dropped(self, scan):
        assert scan(self.TWO, reasoning=False).reasoning == ""


class TestTokenIds:
    def scanner(self, texts):
        ids = {marker: number for number, marker in enumerate(MARKERS)}
        return HarmonyScanner([tool("query")], marker_ids=ids, decode=lambda id_: texts[id_ - 100])

    def test_markers_typed_as_text_are_data(self):
        texts = ['{"sql":"', "<|call|>", '"}', "Write ", "<|end|>", "commentary to=functions.query", "final"]
        scanner = self.scanner(texts)
        events = scanner.feed("", [1, 105, 3, 100, 101, 102, 5])
        events += scanner.feed("", [0, 1, 106, 3, 103, 104, 6])
        assert events + scanner.finish() == [ToolCall("query", '{"sql": "<|call|>"}'), Content("Write <|end|>")]

    def test_text_is_not_read_beside_ids(self):
        scanner = self.scanner(["analysis", "Hm"])
        assert scanner.feed("anything", [1, 100, 3, 101]) == [Reasoning("Hm")]
        assert scanner.feed("late text", []) == []


def test_the_cost_of_a_delta_does_not_grow():
    def seconds(deltas):
        scanner = HarmonyScanner([tool("get_weather")])
        scanner.feed(CALL + '{"city":"')
        start = time.thread_time()
        for _ in range(deltas):
            scanner.feed("abcd")
        scanner.feed('"}<|call|>')
        return time.thread_time() - start

    seconds(1000)
    few, many = min(seconds(4_000) for _ in range(3)), min(seconds(64_000) for _ in range(3))
    assert many < 16 * few * 3
