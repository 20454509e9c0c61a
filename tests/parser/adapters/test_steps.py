"""Dividing the engine's outputs: the text before the end, and empty steps while a parser has more to say."""

import asyncio
from types import SimpleNamespace

from gemmaserve_parser.adapters import steps


class Reader:
    """Has `says` events for every text it is given, and gives one a step."""

    def __init__(self, says):
        self.says = says
        self.pending = 0
        self.seen = []

    def handle(self, result):
        (output,) = result.outputs
        step = steps.current(output.text)
        self.seen.append((output.text, output.finish_reason, step.ending if step else None))
        self.pending += self.says if output.text else 0
        self.pending = max(self.pending - 1, 0)


def output(text, finish_reason=None, index=0):
    return SimpleNamespace(
        index=index, text=text, token_ids=[1], logprobs=None, finish_reason=finish_reason, stop_reason=None
    )


def engine(*results):
    class Engine:
        async def generate(self, prompt, sampling_params, request_id):
            for outputs in results:
                yield SimpleNamespace(outputs=outputs, finished=all(each.finish_reason for each in outputs))

    steps.install(Engine)
    return Engine()


def run(reader, kind, *results):
    parameters = SimpleNamespace(output_kind=SimpleNamespace(name=kind), skip_special_tokens=True)

    async def consume():
        if reader is not None:
            steps.join(reader)
        received = []
        async for result in engine(*results).generate(None, parameters, "id"):
            received.append(result)
            if reader is not None:
                reader.handle(result)
        return received

    received = asyncio.run(consume())
    return received, parameters


def test_the_last_output_is_divided_into_its_text_and_its_end():
    reader = Reader(says=1)
    received, _ = run(reader, "DELTA", [output("a")], [output("b", "length")])
    assert reader.seen == [("a", None, None), ("b", None, "length"), ("", "length", "length")]
    assert [result.finished for result in received] == [False, False, True]
    assert [each.token_ids for result in received for each in result.outputs] == [[1], [1], []]


def test_empty_steps_follow_while_there_is_more_to_say():
    reader = Reader(says=3)
    run(reader, "DELTA", [output("a")], [output("b", "stop")])
    assert [text for text, _, _ in reader.seen] == ["a", "", "", "b", "", "", ""]


def test_a_server_that_does_not_ask_is_not_asked_for_ever():
    class Deaf(Reader):
        def handle(self, result):
            self.pending = 2

    received, _ = run(Deaf(says=2), "DELTA", [output("a", "stop")])
    assert len(received) <= 4


def test_a_result_of_one_choice_that_goes_on_passes_as_it_is():
    first, last = output("a"), output("b", "stop")
    received, _ = run(Reader(says=1), "DELTA", [first], [last])
    assert received[0].outputs[0] is first
    assert received[1].outputs[0] is not last


def test_a_reader_that_is_gone_has_nothing_to_say():
    async def consume():
        steps.join(Reader(says=1))
        reader = Reader(says=1)
        steps.join(reader)
        parameters = SimpleNamespace(output_kind=SimpleNamespace(name="DELTA"), skip_special_tokens=True)
        async for result in engine([output("a")], [output("b", "stop")]).generate(None, parameters, "id"):
            reader.handle(result)
        return [text for text, _, _ in reader.seen]

    assert asyncio.run(consume()) == ["a", "b", ""]


def test_choices_of_one_result_come_one_by_one():
    reader = Reader(says=1)
    received, _ = run(reader, "DELTA", [output("a", index=0), output("b", "stop", index=1)])
    assert [result.outputs[0].index for result in received] == [0, 1, 1]


def test_other_streams_pass_untouched():
    original = [output("a"), output("b", "stop")]
    received, parameters = run(None, "DELTA", original)
    assert [result.outputs for result in received] == [original]
    assert parameters.skip_special_tokens is True


def test_markers_are_asked_for_in_the_text():
    _, parameters = run(Reader(says=1), "DELTA", [output("a", "stop")])
    assert parameters.skip_special_tokens is False


def test_a_whole_answer_passes_undivided_and_its_ending_is_known():
    ended = output("all", "length")

    async def consume():
        steps.join(reader)
        parameters = SimpleNamespace(output_kind=SimpleNamespace(name="FINAL_ONLY"), skip_special_tokens=True)
        results = [result async for result in engine([ended]).generate(None, parameters, "id")]
        return results, steps.ending_of("all"), steps.ending_of("another")

    reader = Reader(says=1)
    results, ending, unknown = asyncio.run(consume())
    assert [result.outputs for result in results] == [[ended]]
    assert (ending, unknown) == ("length", None)


def test_a_cancelled_stream_closes_the_engines():
    closed = []

    class Engine:
        async def generate(self, prompt, sampling_params, request_id):
            try:
                while True:
                    yield SimpleNamespace(outputs=[output("a")], finished=False)
            finally:
                closed.append(request_id)

    steps.install(Engine)

    async def consume():
        stream = Engine().generate(None, None, "id")
        await anext(stream)
        await stream.aclose()

    asyncio.run(consume())
    assert closed == ["id"]
