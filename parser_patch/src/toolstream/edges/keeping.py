"""Answers written to disk, as they came and as cases."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from toolstream.core.cases import CaseSource, build_case, spoken

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from toolstream.core.exchange import Answer
    from toolstream.edges.client import Client

CASES = "cases.jsonl"
_CUT_LIMIT = 400
_AT_A_TIME = 8


async def observe_case(client: Client, source: CaseSource) -> dict[str, Any] | None:
    """The case of an answer, with the model's own words where the server gave token ids and can spell them out.

    None where `build_case` finds none.
    """
    groups = [some for some in source.answer.token_ids if some]
    whole = await _spell(client, [id_ for some in groups for id_ in some], source.request) if groups else None
    if whole is None:
        return build_case(source, None)
    pieces = await _spell_each(client, groups, source.request) if len(groups) <= _CUT_LIMIT else []
    return build_case(source, spoken(pieces, whole))


def write_body(path: Path, answer: Answer) -> None:
    """Write what came, chunk by chunk, with the times: for people."""
    exchange = answer.exchange
    lines = [f"HTTP {exchange.status} {exchange.content_type}"]
    lines += [f"{chunk.at:.4f} {chunk.text}" for chunk in exchange.chunks]
    if exchange.unfinished:
        lines.append(f"unfinished: {exchange.unfinished}")
    lines.append(f"end after {exchange.seconds:.4f} s: {exchange.trouble or 'by the server'} {exchange.detail}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")


def append_case(path: Path, case: Mapping[str, Any]) -> None:
    """Add a case to a file of cases. Lone surrogates, which JSON allows and UTF-8 does not, are escaped."""
    with path.open("a", encoding="utf-8", errors="backslashreplace") as file:
        file.write(json.dumps(case, ensure_ascii=False) + "\n")


async def _spell(client: Client, ids: Sequence[int], request: Mapping[str, Any]) -> str | None:
    answer = await client.post_json("/detokenize", {"model": request.get("model"), "tokens": [*ids]})
    prompt = answer.get("prompt") if isinstance(answer, dict) else None
    return prompt if isinstance(prompt, str) else None


async def _spell_each(client: Client, groups: Sequence[Sequence[int]], request: Mapping[str, Any]) -> list[str]:
    limit = asyncio.Semaphore(_AT_A_TIME)

    async def one(ids: Sequence[int]) -> str:
        async with limit:
            return await _spell(client, ids, request) or ""

    return [*await asyncio.gather(*map(one, groups))]
