"""Whole exchanges: declared tools, requests, the right calls, results and the sentence after them.

An exchange is what an OpenAI client would send, with the assistant's messages as they should be; the chat template
turns it into text. The forms are those that `toolstream` and the demo use, and many like them.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from localcluster.tinymodel.training import names
from localcluster.tinymodel.training.actions import NUMBERS, SKILLS, Action, Json, act, declared, plain

SAY = ("Say in one sentence what you are going to do, then ", "First tell me what you are going to do, then ")
HELLOS = ("Hello", "Hi", "Good morning", "How are you?", "Thank you", "Who are you?", "Thanks, that is all.")
HELLO = "Hello. Tell me what to do."
NO_TOOL = "I have no tool for that."
INTENTION = "I am going to use my tools for that."
THOUGHT_OF_CALLS = "My tools can do that."
THOUGHT_OF_ANSWER = "I can answer."


@dataclass(frozen=True)
class Conversation:
    """Messages (the last one the assistant's), the tools declared, and whether the model is to think."""

    messages: list[Json]
    tools: list[Json]
    thinking: bool


Maker = Callable[[], Action]


def conversation(source: random.Random, *, held_out: bool = False, turns: int = 2) -> Conversation:
    """A random exchange of up to `turns` requests; `held_out` picks the part of all names that it uses."""
    tools, makers = _tools(source, held_out=held_out)
    thinking = source.random() < 0.2
    messages: list[Json] = []
    if source.random() < 0.35:
        messages.append({"role": "system", "content": _system(source)})
    if source.random() < 0.04:
        wish = source.choice(makers)()
        messages += [{"role": "user", "content": _sentence(wish.clause, source)}]
        return Conversation([*messages, _answer(NO_TOOL, thinking)], [], thinking)
    for _ in range(1 if thinking else source.randint(1, turns)):
        if source.random() < 0.06:
            messages += [{"role": "user", "content": source.choice(HELLOS)}, _answer(HELLO, thinking)]
        else:
            messages += _turn(source, makers, thinking)
    return Conversation(messages, [{"type": "function", "function": tool} for tool in tools], thinking)


def _tools(source: random.Random, *, held_out: bool) -> tuple[list[Json], list[Maker]]:
    """One to four tools of different names, and for each what makes up a wish for it."""
    tools: dict[str, Json] = {}
    makers: list[Maker] = []
    wanted = source.choice((1, 2, 2, 3, 3, 4))
    while len(tools) < wanted:
        tool, maker = _tool(source, held_out=held_out)
        if tool["name"] not in tools and not _alike(tool["name"], tools):
            tools[tool["name"]] = tool
            makers.append(maker)
    return [*tools.values()], makers


def _tool(source: random.Random, *, held_out: bool) -> tuple[Json, Maker]:
    kind = source.choice((*SKILLS, "read", "plain"))
    if kind == "plain":
        return plain(source)
    skill = SKILLS[kind]
    tool, roles = declared(source, skill.tools, skill.about, skill.parameters)
    return tool, lambda: act(source, tool, roles, skill, held_out=held_out)


def _alike(name: str, tools: Iterable[str]) -> bool:
    """Whether another tool of the same skill is there: a request would not say which of the two is meant."""
    named = {*tools}
    return any({*skill.tools.split()} & named for skill in SKILLS.values() if name in skill.tools.split())


def _turn(source: random.Random, makers: Sequence[Maker], thinking: bool) -> list[Json]:
    """A request, the calls that answer it, and often their results and what is said about them."""
    request, actions, text = _request(source, makers)
    messages: list[Json] = [{"role": "user", "content": request}, _calls(actions, text, thinking)]
    messages += [
        {"role": "tool", "tool_call_id": f"call_{number}", "content": _result(source)}
        for number, _ in enumerate(actions)
    ]
    return [*messages, _answer(_report(messages), thinking)]


def _request(source: random.Random, makers: Sequence[Maker]) -> tuple[str, list[Action], str]:
    """What the user says, the calls that are right, and the text before them; one text to write at most."""
    wanted = source.choice((1, 1, 2, 3, 3))
    maker = source.choice(makers)
    first = maker()
    if "content" in first.roles and source.random() < 0.4:
        return _dictation(source, first)
    if wanted > 1 and first.heads and source.random() < 0.5:
        actions = [first, *(maker() for _ in range(wanted - 1))]
        head = source.choice(first.heads).format(n=NUMBERS[wanted - 1])
        wish = f"{head} {_row([action.subject for action in actions], source)}"
    else:
        actions = [first]
        for _ in range(wanted - 1):
            more = source.choice(makers)()
            if more not in actions and not ("content" in more.roles and any("content" in a.roles for a in actions)):
                actions.append(more)
        wish = _row([action.clause for action in actions], source)
    if len({action.tool["name"] for action in actions}) == 1 and source.random() < 0.4:
        wish += source.choice((" with the tool ", " using ", " with ", " by ")) + first.tool["name"]
    if len(actions) > 1 and source.random() < 0.2:
        number = NUMBERS[len(actions) - 1]
        wish += source.choice(
            (f": {number} calls at once, in this order", " at once", ", in this order", " in parallel")
        )
    return _introduced(source, wish, actions)


def _introduced(source: random.Random, wish: str, actions: list[Action]) -> tuple[str, list[Action], str]:
    """A wish as a sentence, now and then with the demand to say first what will be done."""
    if source.random() < 0.15:
        return source.choice(SAY) + wish + ".", actions, INTENTION
    return _sentence(wish, source), actions, ""


def _dictation(source: random.Random, action: Action) -> tuple[str, list[Action], str]:
    """The wish to write a file of the lines that follow, most of them numbered as `toolstream` does."""
    text, name = "", action.tool["name"]
    same = names.text(source, 2, 9)
    count = source.choice((2, 3, 5, 8, 30, 30))
    kind = source.random()
    for number in range(1, count + 1):
        line = same if kind < 0.6 else names.text(source, 1, 6)
        text += f"{number}: {line}\n" if kind < 0.85 else f"{line}\n"
    text = text.strip()
    roles = action.roles
    written = Action(action.tool, {**action.arguments, roles["content"]: text}, "", action.subject, (), roles)
    wish = f"Write the file {action.subject}" + source.choice((f" with the tool {name}", ""))
    wish += source.choice((". Its content is exactly these lines:\n", " with these lines:\n", ". Content:\n")) + text
    return wish, [written], ""


def _row(items: Sequence[str], source: random.Random) -> str:
    """`a, b and c`, or another way to name several things."""
    if len(items) == 1:
        return items[0]
    last = source.choice((" and ", " and ", " and ", ", and ", ", then ", ", "))
    return ", ".join(items[:-1]) + last + items[-1]


def _sentence(wish: str, source: random.Random) -> str:
    """A wish as people write it."""
    wish = source.choice(("", "", "", "", "please ", "can you ", "I want you to ", "now ")) + wish
    if source.random() < 0.9:
        wish = wish[0].upper() + wish[1:]
    wish += source.choice((".", ".", ".", "", "", "?", "!", ", please.", " for me."))
    if source.random() < 0.05:
        wish = f"{names.text(source, 2, 6).capitalize()}. {wish}"
    return wish


def _system(source: random.Random) -> str:
    text = source.choice(("You are a helpful assistant.", "You are a coding agent.", "Use the tools.", "Be short."))
    if source.random() < 0.4:
        text += " " + ". ".join(names.text(source, 2, 6).capitalize() for _ in range(source.randint(1, 2))) + "."
    return text


def _calls(actions: Sequence[Action], text: str, thinking: bool) -> Json:
    calls = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {"name": action.tool["name"], "arguments": action.arguments},
        }
        for number, action in enumerate(actions)
    ]
    thought = THOUGHT_OF_CALLS if thinking else None
    return {"role": "assistant", "content": text, "tool_calls": calls, "reasoning": thought}


def _result(source: random.Random) -> str:
    """What a tool gives back: some words, a number, several lines."""
    kind = source.random()
    if kind < 0.6:
        return names.text(source, 1, 4)
    if kind < 0.75:
        return f"{names.word(source)}, {source.randint(-9, 99)} degrees"
    if kind < 0.9:
        return "\n".join(names.text(source, 1, 3) for _ in range(source.randint(2, 3)))
    return f"{names.syllables(source)}: {source.randint(0, 2030)}"


def _report(messages: Sequence[Json]) -> str:
    """The sentence after results: the first line of each."""
    results: list[str] = []
    for message in reversed(messages):
        if message["role"] != "tool":
            break
        results.insert(0, message["content"].split("\n")[0])
    return f"Here is what I got: {'; '.join(results)}."


def _answer(text: str, thinking: bool) -> Json:
    return {"role": "assistant", "content": text, "reasoning": THOUGHT_OF_ANSWER if thinking else None}
