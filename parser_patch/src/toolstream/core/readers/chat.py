"""Chat completions: https://platform.openai.com/docs/api-reference/chat-streaming."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolstream.core.exchange import gather_calls
from toolstream.core.readers.reading import Object, Reading

if TYPE_CHECKING:
    from toolstream.core.exchange import Answer, Exchange


def read(exchange: Exchange) -> Answer:
    """Read choice 0 of a chat completion, streamed or not."""
    reading = Reading(exchange)
    for chunk in reading.objects():
        if chunk.get("error") is not None:
            reading.fault("error", "the server reports an error")
        elif not isinstance(chunk.get("choices"), list):
            reading.fault("shape", "no array 'choices'")
        else:
            for choice in reading.objects_in(chunk, "choices"):
                if choice.get("index", 0) == 0:
                    _choice(reading, choice)
    answer = reading.answer
    answer.calls = gather_calls(reading.pieces)
    answer.ended = answer.finish_reason is not None and (reading.done or not exchange.streaming)
    return answer


def _choice(reading: Reading, choice: Object) -> None:
    answer = reading.answer
    message = reading.object(choice, "delta" if answer.exchange.streaming else "message")
    text = reading.string(message, "content")
    answer.text += text
    answer.reasoning += reading.string(message, "reasoning_content") or reading.string(message, "reasoning")
    ids = choice.get("token_ids")
    answer.token_ids.append([id_ for id_ in ids if isinstance(id_, int)] if isinstance(ids, list) else [])
    for position, call in enumerate(reading.objects_in(message, "tool_calls")):
        function = reading.object(call, "function")
        reading.string(function, "arguments")
        reading.piece(
            index=call.get("index") if answer.exchange.streaming else position,
            id=call.get("id"),
            type=call.get("type"),
            name=function.get("name"),
            arguments=function.get("arguments"),
            beside_text=answer.exchange.streaming and bool(text),
        )
    answer.finish_reason = reading.string(choice, "finish_reason") or answer.finish_reason
