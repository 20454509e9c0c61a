"""What counts as a call and what its arguments are (rules 3 and 4): dialects, values, schemas."""

from __future__ import annotations

from typing import Any, NamedTuple

from gemmaserve_parser.regressions.cases import READ_FILE, TERMINAL, case, checks, tool
from gemmaserve_parser.regressions.registry import add


class Row(NamedTuple):
    """A call as the model writes it, between its markers, and what it is."""

    name: str
    shows: str
    body: str
    arguments: dict[str, Any]
    tool: dict[str, Any] = READ_FILE


def _typed(**properties: Any) -> dict[str, Any]:
    return tool("save", **properties)


_ANYTHING = {"type": "function", "function": {"name": "save"}}

ROWS = (
    Row(
        "parenthesised_call",
        "Round brackets are a call as braces are (vLLM #53642)",
        'call:terminal(command:<|"|>ls -a<|"|>)',
        {"command": "ls -a"},
        TERMINAL,
    ),
    Row(
        "braced_call_control",
        "The documented form (vLLM #53642, control)",
        'call:terminal{command:<|"|>ls -a<|"|>}',
        {"command": "ls -a"},
        TERMINAL,
    ),
    Row(
        "brackets_inside_a_string_are_data",
        "Brackets, braces and quotes in a string end nothing",
        "call:terminal(command:<|\"|>echo ':)' $(date) {(<|\"|>)",
        {"command": "echo ':)' $(date) {("},
        TERMINAL,
    ),
    Row(
        "keyword_arguments",
        "key=value is key:value",
        'call:read_file(path=<|"|>a b.txt<|"|>)',
        {"path": "a b.txt"},
    ),
    Row("json_arguments", "A JSON object inside the braces", 'call:read_file{"path": "a.txt"}', {"path": "a.txt"}),
    Row(
        "json_arguments_in_parentheses",
        "A JSON object inside the parentheses",
        'call:read_file({"path": "a.txt"})',
        {"path": "a.txt"},
    ),
    Row("doubled_braces", "Doubled braces are one pair", 'call:read_file{{path:<|"|>a<|"|>}}', {"path": "a"}),
    Row("ordinary_quotes", "Ordinary quotes delimit a string too", "call:read_file{path:'a.txt'}", {"path": "a.txt"}),
    Row("bare_text", "Bare text of a declared string", "call:read_file{path: a.txt }", {"path": "a.txt"}),
    Row("missing_call_prefix", "A declared name without its prefix", 'read_file{path:<|"|>a<|"|>}', {"path": "a"}),
    Row(
        "duplicate_keys_last_wins", "The last of two equal keys counts", "call:read_file{path:a,path:b}", {"path": "b"}
    ),
    Row(
        "non_ascii_stays_readable",
        "Text beyond ASCII is kept",
        'call:read_file{path:<|"|>Größe 🙂 日本.txt<|"|>}',
        {"path": "Größe 🙂 日本.txt"},
    ),
    Row(
        "quotes_and_newlines_in_a_string",
        "Quotes, backslashes and newlines survive as they are",
        'call:read_file{path:<|"|>say "hi"\\n\n\\\\<|"|>}',
        {"path": 'say "hi"\\n\n\\\\'},
    ),
    Row(
        "declared_types",
        "Bare values take the declared type",
        "call:save{id:7,ratio:0.5,force:true,tags:[1,2],meta:{a:1}}",
        {"id": 7, "ratio": 0.5, "force": True, "tags": [1, 2], "meta": {"a": 1}},
        _typed(id="integer", ratio="number", force="boolean", tags={"type": "array"}, meta={"type": "object"}),
    ),
    Row(
        "a_declared_string_stays_one",
        "A number, null and true stay text where a string is declared",
        'call:save{a:5,b:null,c:<|"|>true<|"|>,d:<|"|>01234<|"|>}',
        {"a": "5", "b": "null", "c": "true", "d": "01234"},
        _typed(a="string", b="string", c="string", d="string"),
    ),
    Row(
        "natural_types_without_a_schema",
        "Without a schema bare values are what they look like and quoted ones are text",
        'call:save{a:5,b:-7.5,c:true,d:null,e:[1,<|"|>x<|"|>],f:{g:false},h:hello,i:<|"|>null<|"|>}',
        {"a": 5, "b": -7.5, "c": True, "d": None, "e": [1, "x"], "f": {"g": False}, "h": "hello", "i": "null"},
        _ANYTHING,
    ),
    Row(
        "a_quoted_number_for_a_declared_integer",
        "A quoted number is read as the declared integer, since nothing is lost",
        'call:save{id:<|"|>3<|"|>}',
        {"id": 3},
        _typed(id="integer"),
    ),
    Row(
        "a_nullable_type_takes_null",
        "Null is null where the schema allows it",
        "call:save{id:null}",
        {"id": None},
        _typed(id={"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    ),
    Row(
        "integers_keep_all_digits",
        "A long integer loses nothing",
        "call:save{id:12345678901234567890123}",
        {"id": 12345678901234567890123},
        _typed(id="integer"),
    ),
    Row("no_arguments_are_an_empty_object", "Never an empty string", "call:get_status{}", {}, tool("get_status")),
    Row("empty_parentheses", "No arguments in parentheses", "call:get_status()", {}, tool("get_status")),
    Row(
        "call_that_ends_right_after_its_name",
        "A declared name and nothing else is a call without arguments",
        "call:get_status",
        {},
        tool("get_status"),
    ),
)

for row in ROWS:
    declared = row.tool["function"]["name"]
    made = case(f"<|tool_call>{row.body}<tool_call|>", calls=[(declared, row.arguments)], tools=[row.tool])
    add(row.name, row.shows, checks(made))

add(
    "parenthesised_call_followed_by_braced_call",
    "A parenthesised call swallows nothing of the braced one after it (vLLM #53642)",
    checks(
        case(
            '<|tool_call>call:terminal(command:<|"|>ls<|"|>)<tool_call|>'
            '<|tool_call>call:read_file{path:<|"|>a<|"|>}<tool_call|>',
            calls=[("terminal", {"command": "ls"}), ("read_file", {"path": "a"})],
        )
    ),
)
add(
    "an_undeclared_name_is_passed_on",
    "A well-formed call of an undeclared tool goes to the client as written",
    checks(case("<|tool_call>call:other_tool{a:1}<tool_call|>", calls=[("other_tool", {"a": 1})])),
)
