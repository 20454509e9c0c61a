"""The tools that training declares, and what a user says when one is to be called."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from localcluster.tinymodel.training import names

Json = dict[str, Any]

NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


@dataclass(frozen=True)
class Action:
    """One call that a user wants.

    Attributes:
        tool: The declared tool, as in a chat completion's `tools[].function`.
        arguments: The right arguments.
        clause: What the user says for it, as in "read a.txt".
        subject: The name that the clause is about, alone, and the clauses that take several of them in a row;
            empty where there is no such name.
        heads: see `subject`.
        roles: The names that the tool gives its arguments, by what they mean.
    """

    tool: Json
    arguments: Json
    clause: str
    subject: str = ""
    heads: tuple[str, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Parameter:
    """One argument of a skill, a string: the names and descriptions that tools give it."""

    names: str
    about: str


@dataclass(frozen=True)
class Skill:
    """A thing that tools of many names can do.

    Attributes:
        tools: Names that such a tool may have, and what it says of itself.
        about: see `tools`; alternatives stand between bars.
        parameters: The arguments by their role in the clauses.
        clauses: What users say; `{role}` is where an argument goes.
        several: Clauses of which the last word is the first of several subjects.
        makers: How each string argument is made up.
    """

    tools: str
    about: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    clauses: tuple[str, ...] = ()
    several: tuple[str, ...] = ()
    makers: Mapping[str, Callable[[random.Random], str]] = field(default_factory=dict)


_PATH = Parameter("path filePath file_path file filename name target", "Path of the file|The file's path|Which file")
_FOLDER = Parameter("path dir directory folder", "Path of the directory|The folder|Which directory")
_CITY = Parameter("city location place town", "The city|Name of the city|Where")


def _line(source: random.Random) -> str:
    return names.text(source, 1, 5)


SKILLS: Mapping[str, Skill] = {
    "read": Skill(
        "read_file readFile read open_file view_file cat",
        "Read one file.|Read a file of the project|Reads a file|Return the content of a file|Read file contents",
        {"x": _PATH},
        (
            "read {x}",
            "open {x}",
            "look into {x}",
            "read the file {x}",
            "give me the content of {x}",
        ),
        ("read", "open", "read the files", "read the {n} files", "look into", "give me the {n} files"),
        {"x": names.file},
    ),
    "write": Skill(
        "write_file writeFile write save_file create_file",
        "Write one file.|Write a file|Save text in a file|Creates a file with this content",
        {"x": _PATH, "content": Parameter("content text body data", "The whole content|What to write|The text")},
        (
            "write {content} to {x}",
            "save the text {content} as {x}",
            "write the file {x} with the content {content}",
            "create {x} and put {content} in it",
        ),
        (),
        {"x": names.file, "content": _line},
    ),
    "weather": Skill(
        "get_weather weather getWeather get_forecast",
        "Weather forecast for a city|Get the weather of a city.|Tells the weather|Current weather",
        {"x": _CITY},
        ("tell me the weather in {x}", "get the weather for {x}", "find out how the weather is in {x}"),
        ("tell me the weather in", "get the weather for", "check the weather in the {n} cities"),
        {"x": names.city},
    ),
    "list": Skill(
        "list_directory ls list_files listDir list list_dir",
        "List a directory|List the files of a folder.|Lists a directory",
        {"x": _FOLDER},
        ("list {x}", "list the directory {x}", "show me what is in the folder {x}", "list the files in {x}"),
        ("list", "list the directories", "list the {n} folders"),
        {"x": names.folder},
    ),
}

THINGS = "tasks users jobs notes events issues orders".split()
KINDS = "open new last own late free".split()


def declared(source: random.Random, tools: str, about: str, parameters: Mapping[str, Parameter]) -> tuple[Json, Json]:
    """A declaration of a tool, and the names that it gives the roles of `parameters`."""
    roles = {role: source.choice(parameter.names.split()) for role, parameter in parameters.items()}
    while len({*roles.values()}) < len(roles):
        roles = {role: source.choice(parameter.names.split()) for role, parameter in parameters.items()}
    described = source.random() < 0.6
    properties = {
        roles[role]: {"type": "string"}
        | ({"description": source.choice(parameter.about.split("|"))} if described else {})
        for role, parameter in parameters.items()
    }
    schema: Json = {"type": "object", "properties": properties}
    if properties or source.random() < 0.5:
        schema["required"] = [*properties]
    tool = {"name": source.choice(tools.split()), "description": source.choice(about.split("|")), "parameters": schema}
    return tool, roles


def quoted(source: random.Random, value: str, *, name: bool) -> str:
    """A value as a user writes it: names mostly bare, texts always in quotes."""
    quote = source.choice(("", "", "", "", "", "", "", "`", '"', "'") if name else ("'", '"'))
    return f"{quote}{value}{quote}"


def act(source: random.Random, tool: Json, roles: Json, skill: Skill, *, held_out: bool) -> Action:
    """One call of a tool of a skill."""
    spoken: dict[str, str] = {}
    arguments: Json = {}
    for role in skill.parameters:
        arguments[roles[role]] = value = names.drawn(skill.makers[role], source, held_out=held_out)
        spoken[role] = quoted(source, value, name=role != "content")
    clause = source.choice(skill.clauses).format_map(spoken)
    return Action(tool, arguments, clause, spoken["x"], skill.several, roles)


def plain(source: random.Random) -> tuple[Json, Callable[[], Action]]:
    """A tool without arguments and the wish to call it."""
    kind, thing = source.choice(KINDS), source.choice(THINGS)
    about = f"{source.choice(('List', 'Get', 'Show'))} the {kind} {thing}." + source.choice(
        ("", " Takes no arguments.", " No arguments.")
    )
    tool, _ = declared(source, f"list_{thing}", about, {})
    clause = f"{source.choice(('list', 'show me', 'get'))} the {kind} {thing}"
    return tool, lambda: Action(tool, {}, clause)
