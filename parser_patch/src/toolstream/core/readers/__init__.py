"""From an exchange to an answer: one reader a protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from toolstream.core.exchange import CHAT, MESSAGES, RESPONSES
from toolstream.core.readers import chat, messages, responses

if TYPE_CHECKING:
    from toolstream.core.exchange import Answer, Exchange

_READERS = {CHAT: chat.read, RESPONSES: responses.read, MESSAGES: messages.read}


def read(exchange: Exchange) -> Answer:
    """Read an exchange by its endpoint's protocol. Anything at all may have come; nothing raises."""
    return _READERS[exchange.endpoint](exchange)
